package main

import (
	"strings"
	"testing"

	"sledge"
)

func TestGreet(t *testing.T) {
	for body, want := range map[string]string{"Ada\n": "Hello, Ada!\n", "": "Send a name in the body.\n"} {
		var w sledge.Recorder
		if err := greet(&w, &sledge.Request{Body: strings.NewReader(body)}); err != nil || w.Body.String() != want {
			t.Fatalf("%q: got %q, %v", body, w.Body.String(), err)
		}
	}
}
