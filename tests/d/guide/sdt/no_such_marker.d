/* A marker that the provider does not have is an error.
   @@exit: 1
   @@stderr: does not match any probes
   @@program: query.py
   @@python: 3.9 */
python$target:::no-such-marker { }
