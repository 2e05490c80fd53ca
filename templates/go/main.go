// Greets whoever the body names.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func greet(name string) string {
	return fmt.Sprintf("Hello, %s!\n", strings.TrimSpace(name))
}

// Runs anew for each request: the body is standard input, the reply standard output, the log standard error.
func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "sending a greeting")
	if _, err := io.WriteString(os.Stdout, greet(string(body))); err != nil {
		os.Exit(1)
	}
}
