enum e { A };
enum f { A }; /* error: D_DECL_IDRED */
