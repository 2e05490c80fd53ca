module ledger

go 1.24
