module counts

go 1.24
