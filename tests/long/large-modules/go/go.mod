module large

go 1.24
