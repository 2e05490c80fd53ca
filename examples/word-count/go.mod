module word-count

go 1.21
