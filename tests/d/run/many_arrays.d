/* More arrays and aggregations than the maps that the kernel gives a program, 64. */
int all, length, left;
BEGIN
{
	a0[0] = 0; s0["k"] = "v0"; @c0[0] = sum(0); a1[1] = 1; s1["k"] = "v1"; @c1[1] = sum(1); a2[2] = 2;
	s2["k"] = "v2"; @c2[2] = sum(2); a3[3] = 3; s3["k"] = "v3"; @c3[3] = sum(3); a4[4] = 4; s4["k"] =
	"v4"; @c4[4] = sum(4); a5[5] = 5; s5["k"] = "v5"; @c5[5] = sum(5); a6[6] = 6; s6["k"] = "v6"; @c6[6]
	= sum(6); a7[7] = 7; s7["k"] = "v7"; @c7[7] = sum(7); a8[8] = 8; s8["k"] = "v8"; @c8[8] = sum(8);
	a9[9] = 9; s9["k"] = "v9"; @c9[9] = sum(9); a10[10] = 10; s10["k"] = "v10"; @c10[10] = sum(10);
	a11[11] = 11; s11["k"] = "v11"; @c11[11] = sum(11); a12[12] = 12; s12["k"] = "v12"; @c12[12] =
	sum(12); a13[13] = 13; s13["k"] = "v13"; @c13[13] = sum(13); a14[14] = 14; s14["k"] = "v14";
	@c14[14] = sum(14); a15[15] = 15; s15["k"] = "v15"; @c15[15] = sum(15); a16[16] = 16; s16["k"] =
	"v16"; @c16[16] = sum(16); a17[17] = 17; s17["k"] = "v17"; @c17[17] = sum(17); a18[18] = 18;
	s18["k"] = "v18"; @c18[18] = sum(18); a19[19] = 19; s19["k"] = "v19"; @c19[19] = sum(19); a20[20] =
	20; s20["k"] = "v20"; @c20[20] = sum(20); a21[21] = 21; s21["k"] = "v21"; @c21[21] = sum(21);
	a22[22] = 22; s22["k"] = "v22"; @c22[22] = sum(22); a23[23] = 23; s23["k"] = "v23"; @c23[23] =
	sum(23); a24[24] = 24; s24["k"] = "v24"; @c24[24] = sum(24); a25[25] = 25; s25["k"] = "v25";
	@c25[25] = sum(25); a26[26] = 26; s26["k"] = "v26"; @c26[26] = sum(26); a27[27] = 27; s27["k"] =
	"v27"; @c27[27] = sum(27); a28[28] = 28; s28["k"] = "v28"; @c28[28] = sum(28); a29[29] = 29;
	s29["k"] = "v29"; @c29[29] = sum(29); a30[30] = 30; s30["k"] = "v30"; @c30[30] = sum(30); a31[31] =
	31; s31["k"] = "v31"; @c31[31] = sum(31); a32[32] = 32; s32["k"] = "v32"; @c32[32] = sum(32);
}
BEGIN
{
	all += a0[0]; length += strlen(s0["k"]); all += a1[1]; length += strlen(s1["k"]); all += a2[2]; length +=
	strlen(s2["k"]); all += a3[3]; length += strlen(s3["k"]); all += a4[4]; length += strlen(s4["k"]); all +=
	a5[5]; length += strlen(s5["k"]); all += a6[6]; length += strlen(s6["k"]); all += a7[7]; length +=
	strlen(s7["k"]); all += a8[8]; length += strlen(s8["k"]); all += a9[9]; length += strlen(s9["k"]); all +=
	a10[10]; length += strlen(s10["k"]); all += a11[11]; length += strlen(s11["k"]); all += a12[12]; length +=
	strlen(s12["k"]); all += a13[13]; length += strlen(s13["k"]); all += a14[14]; length += strlen(s14["k"]);
	all += a15[15]; length += strlen(s15["k"]); all += a16[16]; length += strlen(s16["k"]); all += a17[17];
	length += strlen(s17["k"]); all += a18[18]; length += strlen(s18["k"]); all += a19[19]; length +=
	strlen(s19["k"]); all += a20[20]; length += strlen(s20["k"]); all += a21[21]; length += strlen(s21["k"]);
	all += a22[22]; length += strlen(s22["k"]); all += a23[23]; length += strlen(s23["k"]); all += a24[24];
	length += strlen(s24["k"]); all += a25[25]; length += strlen(s25["k"]); all += a26[26]; length +=
	strlen(s26["k"]); all += a27[27]; length += strlen(s27["k"]); all += a28[28]; length += strlen(s28["k"]);
	all += a29[29]; length += strlen(s29["k"]); all += a30[30]; length += strlen(s30["k"]); all += a31[31];
	length += strlen(s31["k"]); all += a32[32]; length += strlen(s32["k"]);
}
BEGIN
{
	a0[0] = 0; left += a0[0]; a1[1] = 0; left += a1[1]; a2[2] = 0; left += a2[2]; a3[3] = 0; left +=
	a3[3]; a4[4] = 0; left += a4[4]; a5[5] = 0; left += a5[5]; a6[6] = 0; left += a6[6]; a7[7] = 0; left
	+= a7[7]; a8[8] = 0; left += a8[8]; a9[9] = 0; left += a9[9]; a10[10] = 0; left += a10[10]; a11[11]
	= 0; left += a11[11]; a12[12] = 0; left += a12[12]; a13[13] = 0; left += a13[13]; a14[14] = 0; left
	+= a14[14]; a15[15] = 0; left += a15[15]; a16[16] = 0; left += a16[16]; a17[17] = 0; left +=
	a17[17]; a18[18] = 0; left += a18[18]; a19[19] = 0; left += a19[19]; a20[20] = 0; left += a20[20];
	a21[21] = 0; left += a21[21]; a22[22] = 0; left += a22[22]; a23[23] = 0; left += a23[23]; a24[24] =
	0; left += a24[24]; a25[25] = 0; left += a25[25]; a26[26] = 0; left += a26[26]; a27[27] = 0; left +=
	a27[27]; a28[28] = 0; left += a28[28]; a29[29] = 0; left += a29[29]; a30[30] = 0; left += a30[30];
	a31[31] = 0; left += a31[31]; a32[32] = 0; left += a32[32];
	printf("%d %d %d\n", all, length, left);
	printa("%d %@d %@d\n", @c0, @c32);
	trunc(@c0); trunc(@c1); trunc(@c2); trunc(@c3); trunc(@c4); trunc(@c5); trunc(@c6); trunc(@c7);
	trunc(@c8); trunc(@c9); trunc(@c10); trunc(@c11); trunc(@c12); trunc(@c13); trunc(@c14);
	trunc(@c15); trunc(@c16); trunc(@c17); trunc(@c18); trunc(@c19); trunc(@c20); trunc(@c21);
	trunc(@c22); trunc(@c23); trunc(@c24); trunc(@c25); trunc(@c26); trunc(@c27); trunc(@c28);
	trunc(@c29); trunc(@c30); trunc(@c31); trunc(@c32);
	exit(0);
}
/* @@output
528 89 0
0 0 0
32 0 32
*/
