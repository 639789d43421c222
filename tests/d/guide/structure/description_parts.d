/* Parts of a description that are left out match anything; fewer colons leave out the left ones. */
BEGIN { n++; }
:BEGIN { n++; }
::BEGIN { n++; }
:::BEGIN { n++; }
dtrace:::BEGIN { n++; }
dtrace::: { printf("%d %s\n", n, probename); }
BEGIN { exit(0); }
/* @@output
5 BEGIN
5 END
*/
