"""python -m dtap: the command dtap."""
from dtap._program import main

main()
