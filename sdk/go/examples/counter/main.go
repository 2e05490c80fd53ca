// Counts the requests for each path, in the key-value store. A reactor: it is initialised once, and each request starts from there.
package main

import (
	"fmt"
	"sledge"
)

//go:wasmexport sledge_handle
func handle() int32 { return sledge.Respond(count) }

func count(w sledge.ResponseWriter, r *sledge.Request) error {
	bucket, err := sledge.OpenBucket("counter")
	if err != nil {
		return err
	}
	sum, err := bucket.Increment(r.Target, 1)
	if err != nil {
		return err
	}
	w.SetHeader("content-type", "text/plain")
	_, err = fmt.Fprintf(w, "%s: %d\n", r.Target, sum)
	return err
}

func main() {}
