// What `sledge` is measured against: handlers for the Go runtime of Nuclio's processor, which calls them in its own process, without a sandbox.
package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nuclio/nuclio-sdk-go"
)

// As in examples/fibonacci.
const fibonacciMax = 50

var pong = []byte("pong\n")

// Ping always replies the same.
func Ping(*nuclio.Context, nuclio.Event) (interface{}, error) {
	return pong, nil
}

// Echo replies the body, without a copy of its own.
func Echo(_ *nuclio.Context, event nuclio.Event) (interface{}, error) {
	return event.GetBody(), nil
}

// Fibonacci computes in the slowest way, as examples/fibonacci does.
func Fibonacci(_ *nuclio.Context, event nuclio.Event) (interface{}, error) {
	index, err := strconv.ParseUint(strings.TrimSpace(string(event.GetBody())), 10, 32)
	if err != nil {
		return nil, err
	}
	if index > fibonacciMax {
		return nil, errors.New("the index is too large")
	}
	return append(strconv.AppendUint(nil, fibonacci(index), 10), '\n'), nil
}

func fibonacci(index uint64) uint64 {
	if index < 2 {
		return index
	}
	return fibonacci(index-1) + fibonacci(index-2)
}
