pid1:a.out:main:1f { }
