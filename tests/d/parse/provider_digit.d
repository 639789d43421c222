provider python3 { }; /* error: D_PROV_BADNAME */
