// Greets the name in the request's body.
package main

import (
	"fmt"
	"io"
	"strings"

	"sledge"
)

// Starts anew for each request.
func main() { sledge.Main(greet) }

func greet(w sledge.ResponseWriter, r *sledge.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(string(body))
	if name == "" {
		w.SetStatus(400)
		_, err = io.WriteString(w, "Send a name in the body.\n")
		return err
	}
	sledge.Log(sledge.Info, "sending a greeting")
	_, err = fmt.Fprintf(w, "Hello, %s!\n", name)
	return err
}
