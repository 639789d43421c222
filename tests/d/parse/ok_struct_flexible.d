struct s { int n; char tail[]; };
