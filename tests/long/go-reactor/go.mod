module go-reactor

go 1.24
