BEGIN { x = 'a'; x = '\n'; x = '\''; x = '\\'; x = '\0'; x = '\101'; x = '\x41'; x = 'ab'; x = 'abcdefgh'; }
