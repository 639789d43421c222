/* What is counted under a name is counted under that name, though its string has the place of one that is gone.
   @@python: 3.9 3.13
   @@blanks: any */
python$target:::function-entry { @[copyinstr(arg1)] = count(); }
END { trunc(@, 5); printa("%s %@d\n", @); }
/* @@output
new_3001 3001
new_3002 3002
new_3003 3003
new_3004 3004
new_3005 3005
*/
