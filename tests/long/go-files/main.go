// A command of stock Go that uses files, its environment, arguments and clocks.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

func check(ok bool, what ...any) {
	if !ok {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, err)
	return value
}

func main() {
	check(os.Getenv("NAME") == "value" && len(os.Args) == 2 && os.Args[1] == "argument", "arguments", os.Args)
	text := must(os.ReadFile("/r/kept"))
	check(string(text) == "kept", "content", string(text))
	_, err := os.ReadFile("/r/none")
	check(errors.Is(err, fs.ErrNotExist), "no such file", err)
	check(os.WriteFile("/r/new", nil, 0o644) != nil, "a folder for reading was written to")
	check(os.MkdirAll("/w/a/b", 0o755) == nil, "mkdir")
	check(os.WriteFile("/w/a/b/file", []byte(strings.Repeat("line\n", 1000)), 0o644) == nil, "write")
	check(os.Rename("/w/a/b/file", "/w/a/moved") == nil, "rename")
	file := must(os.OpenFile("/w/a/moved", os.O_RDWR|os.O_APPEND, 0))
	must(file.WriteString("end\n"))
	must(file.Seek(-4, io.SeekEnd))
	check(string(must(io.ReadAll(file))) == "end\n", "append")
	check(must(file.Stat()).Size() == 5004, "size")
	check(file.Close() == nil, "close")
	entries := must(os.ReadDir("/w/a"))
	check(len(entries) == 2 && entries[0].Name() == "b" && entries[0].IsDir() && entries[1].Name() == "moved", "entries", entries)
	check(os.RemoveAll("/w/a") == nil, "remove")
	begun := time.Now()
	time.Sleep(30 * time.Millisecond)
	check(time.Since(begun) >= 30*time.Millisecond, "slept")
	body := must(io.ReadAll(os.Stdin))
	fmt.Printf("%s, %s\n", text, body)
}
