translator int < int x > { }; /* error: D_XLATE_SOU */
