BEGIN { ;; trace(1);; }
