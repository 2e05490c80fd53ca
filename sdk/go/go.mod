module sledge

go 1.24
