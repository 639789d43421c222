/* What Python's json.dumps wrote. */
#pragma D option strsize=512
inline string doc = "{\"name\": \"spam\", \"n\": -42, \"x\": 1500.0, \"yes\": true, \"none\": null, \"list\": [1, [2, 3], {\"k\": \"v, ] }\"}], \"deep\": {\"er\": {\"est\": \"here\"}}, \"esc\": \"a\\\"b\\\\c\", \"na\": \"short\", \"\": 0}";
BEGIN
{
	printf("name=%s\n", json(doc, "name"));
	printf("n=%s\n", json(doc, "n"));
	printf("x=%s\n", json(doc, "x"));
	printf("yes=%s\n", json(doc, "yes"));
	printf("none=%s\n", json(doc, "none"));
	printf("list[0]=%s\n", json(doc, "list[0]"));
	printf("list[1]=%s\n", json(doc, "list[1]"));
	printf("list[1][1]=%s\n", json(doc, "list[1][1]"));
	printf("list[2].k=%s\n", json(doc, "list[2].k"));
	printf("list[3]=%s\n", json(doc, "list[3]"));
	printf("deep.er.est=%s\n", json(doc, "deep.er.est"));
	printf("deep.er=%s\n", json(doc, "deep.er"));
	printf("deep.est=%s\n", json(doc, "deep.est"));
	printf("esc=%s\n", json(doc, "esc"));
	printf("na=%s\n", json(doc, "na"));
	printf("nam=%s\n", json(doc, "nam"));
	printf("names=%s\n", json(doc, "names"));
	printf("name.x=%s\n", json(doc, "name.x"));
	printf("n[0]=%s\n", json(doc, "n[0]"));
	printf("zz=%s\n", json(doc, "zz"));
	printf("%s %s %s\n", json("[10, [20, {\"a\": 30}]]", "[0]"), json("[10, [20, {\"a\": 30}]]", "[1][1].a"),
	    json(" { \"a\" : [ ] , \"b\" :{} }", "a"));
	printf("[%s]\n", json("not json", "a"));
	exit(0);
}
/* @@output
name=spam
n=-42
x=1500.0
yes=true
none=null
list[0]=1
list[1]=[2, 3]
list[1][1]=3
list[2].k=v, ] }
list[3]=
deep.er.est=here
deep.er={"est": "here"}
deep.est=
esc=a\"b\\c
na=short
nam=
names=
name.x=
n[0]=
zz=
10 30 [ ]
[]
*/
