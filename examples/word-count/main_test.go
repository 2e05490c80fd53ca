package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	report, err := count(strings.NewReader("b a, B\nc"))
	if err != nil || report.Words != 4 || report.Distinct != 3 || report.Most[0] != (word{"b", 2}) || report.Most[1] != (word{"a", 1}) {
		t.Fatalf("%v, %v", report, err)
	}
}

func TestNothing(t *testing.T) {
	report, err := count(strings.NewReader(" \n."))
	if err != nil || report.Words != 0 || len(report.Most) != 0 {
		t.Fatalf("%v, %v", report, err)
	}
}
