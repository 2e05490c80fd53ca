package sledge

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func shout(w ResponseWriter, r *Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	w.SetStatus(201)
	w.AddHeader("x-language", "none")
	w.SetHeader("x-language", r.Header("accept-language"))
	w.SetTrailer("x-end", "yes")
	_, err = fmt.Fprint(w, strings.ToUpper(string(body)))
	return err
}

func TestHandlersRunNatively(t *testing.T) {
	var w Recorder
	r := &Request{Method: "POST", Headers: []Field{{"accept-language", "eo"}}, Body: strings.NewReader("abc")}
	if err := shout(&w, r); err != nil {
		t.Fatal(err)
	}
	if w.Status != 201 || w.Body.String() != "ABC" || len(w.Headers) != 1 || w.Headers[0] != (Field{"x-language", "eo"}) {
		t.Fatalf("got %+v", w)
	}
}

func TestThereIsNoServerNatively(t *testing.T) {
	if _, err := OpenBucket("b"); !errors.Is(err, ErrNotSupported) {
		t.Fatal(err)
	}
	if _, err := Invoke("f", nil); err == nil || err.Error() != "the server does not offer this" {
		t.Fatal(err)
	}
}

func TestRowsAreReadToTheFirstThatIsCut(t *testing.T) {
	rows := appendRow(appendRow(appendRow(nil, "a"), "1"), "b")
	if got := fields(rows); len(got) != 1 || got[0] != (Field{"a", "1"}) {
		t.Fatalf("got %v", got)
	}
	if got := fields(rows[:7]); got != nil {
		t.Fatalf("got %v", got)
	}
}
