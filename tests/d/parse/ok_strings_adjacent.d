BEGIN { trace("a" "b"
	"c"); }
