enum e { A };
enum e { B }; /* error: D_DECL_TYPERED */
