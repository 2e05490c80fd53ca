// Empty: it lets main_wasip1.go declare functions that have no body.
