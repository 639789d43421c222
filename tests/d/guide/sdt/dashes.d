/* Two underscores in a marker's name are a dash in the probe's.
   @@program: query.py
   @@python: 3.9 3.13 */
python$target:::function-entry /copyinstr(arg1) == "query"/ { printf("%s ", probename); }
python$target:::function-return /copyinstr(arg1) == "query"/ { printf("%s\n", probename); }
/* @@output
function-entry function-return
function-entry function-return
function-entry function-return
*/
