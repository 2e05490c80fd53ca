// Uses everything that the SDK has, for its tests. A command: it starts from the beginning for each request.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sledge"
	"strings"
	"time"
)

func main() { sledge.Main(answer) }

func answer(w sledge.ResponseWriter, r *sledge.Request) error {
	path, _, _ := strings.Cut(r.Target, "?")
	switch path[strings.LastIndex(path, "/")+1:] {
	case "head":
		return head(w, r)
	case "kv":
		return keys(w)
	case "call":
		return calls(w)
	case "fetch":
		return fetch(w, r)
	case "stream":
		return stream(w)
	case "error":
		return errors.New("no reply today")
	case "status":
		w.SetStatus(99)
		return nil
	default: // also where another function calls
		return echo(w, r)
	}
}

func echo(w sledge.ResponseWriter, r *sledge.Request) error {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = w.Write(bytes.ToUpper(body))
	}
	return err
}

func head(w sledge.ResponseWriter, r *sledge.Request) error {
	w.SetStatus(201)
	w.SetHeader("content-type", "text/plain")
	w.AddHeader("x-one", "1")
	w.AddHeader("x-one", "2")
	sledge.Log(sledge.Warn, "a warning")
	sledge.Phase(1)
	_, err := fmt.Fprintf(w, "%s %s %q %q\n", r.Method, r.Target, r.Header("x-some"), r.Header("x-none"))
	return err
}

func keys(w sledge.ResponseWriter) error {
	bucket, err := sledge.OpenBucket("conformance")
	if err != nil {
		return err
	}
	report := func(format string, values ...any) { fmt.Fprintf(w, format+"\n", values...) }
	_, err = bucket.Get("a")
	report("get: %v", err)
	long := strings.Repeat("long ", 2000)
	first, err := bucket.Set("a", []byte(long))
	report("set: %v %v", first > 0, err)
	entry, err := bucket.Get("a")
	report("get: %v %v %v", string(entry.Value) == long, entry.Version == first, err)
	there, err := bucket.Exists("a")
	report("exists: %v %v", there, err)
	sum, err := bucket.Increment("n", 40)
	report("increment: %v %v", sum, err)
	sum, err = bucket.Increment("n", 2)
	report("increment: %v %v", sum, err)
	_, err = bucket.Increment("a", 1)
	report("increment: %v", errors.Is(err, sledge.ErrInvalid))
	swapped, version, err := bucket.CompareAndSwap("a", first+1, []byte("x"))
	report("swap: %v %v %v", swapped, version == first, err)
	swapped, second, err := bucket.CompareAndSwap("a", first, []byte("x"))
	report("swap: %v %v %v", swapped, second > first, err)
	changes := []sledge.Change{{Key: "b", Value: []byte("bee")}, {Key: "n", Delete: true}, {Key: "empty"}}
	done, version, err := bucket.Commit([]sledge.Expected{{Key: "a", Version: first}}, changes)
	report("commit: %v %v %v", done, version == second, err)
	done, _, err = bucket.Commit([]sledge.Expected{{Key: "a", Version: second}, {Key: "none"}}, changes)
	report("commit: %v %v", done, err)
	entries, err := bucket.GetMany([]string{"b", "n", "a", "empty"})
	for _, entry := range entries {
		report("get many: %q %v", entry.Value, entry.Version > 0)
	}
	report("get many: %v", err)
	all, err := bucket.Keys("")
	report("keys: %q %v", all, err)
	for _, key := range all {
		if err := bucket.Delete(key); err != nil {
			return err
		}
	}
	all, err = bucket.Keys("")
	report("keys: %q %v", all, err)
	return nil
}

func calls(w sledge.ResponseWriter) error {
	report := func(reply []byte, err error) { fmt.Fprintf(w, "%d %.9q %v\n", len(reply), reply, err) }
	report(sledge.Invoke("conformance", []byte("invoked")))
	report(sledge.Invoke("conformance", bytes.Repeat([]byte("long "), 2000)))
	one, err := sledge.Start("conformance", []byte("one"))
	if err != nil {
		return err
	}
	two, err := sledge.Start("conformance", []byte("two"))
	if err != nil {
		return err
	}
	report(two.Wait())
	report(one.Wait())
	report(sledge.Invoke("none", nil))
	return sledge.Send("conformance", []byte("sent"))
}

func fetch(w sledge.ResponseWriter, r *sledge.Request) error {
	url, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	request := sledge.Fetch{Method: "POST", URL: string(url), Headers: []sledge.Field{{Name: "x-some", Value: "thing"}}, Body: []byte("fetched"), HeadTimeout: 20 * time.Second}
	response, err := request.Send()
	if err != nil {
		fmt.Fprintln(w, err)
		return nil
	}
	defer response.Close()
	status, err := response.Status()
	if err != nil {
		return err
	}
	headers, err := response.Headers()
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response)
	fmt.Fprintf(w, "%d %v %q %v\n", status, len(headers) > 0, body, err)
	return nil
}

func stream(w sledge.ResponseWriter) error {
	w.SetHeader("content-type", "text/plain")
	w.SetTrailer("x-end", "no")
	w.Stream(-1)
	for _, piece := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(w, piece); err != nil {
			return err
		}
	}
	w.SetTrailer("x-end", "yes")
	return nil
}
