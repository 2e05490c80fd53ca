// A reactor in stock Go: `init` makes a table, each request gets its body through it, and refuses a sandbox that has served before.
package main

import (
	"io"
	"os"
)

var table [256]byte
var served int

func init() {
	for i := range table {
		table[i] = byte(i)
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c] = byte(c) - 32
	}
}

//go:wasmexport sledge_handle
func handle() int32 {
	served++
	if served != 1 {
		return 2
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	for i, c := range body {
		body[i] = table[c]
	}
	if _, err := os.Stdout.Write(body); err != nil {
		return 1
	}
	return 0
}

func main() {}
