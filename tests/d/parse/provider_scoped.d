provider a`b { }; /* error: D_PROV_BADNAME */
