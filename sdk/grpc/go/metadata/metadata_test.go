package metadata

import (
	"context"
	"testing"
)

func TestMetadataDoesNotShare(t *testing.T) {
	md := Pairs("A", "1", "a", "2")
	ctx := AppendToOutgoingContext(NewOutgoingContext(context.Background(), md), "B", "3")
	other := AppendToOutgoingContext(ctx, "b", "4")
	got, _ := FromOutgoingContext(ctx)
	if len(got.Get("a")) != 2 || len(got.Get("B")) != 1 || len(ValueFromOutgoingContext(other, "B")) != 2 {
		t.Fatal(got)
	}
	got.Append("a", "5")
	got["a"][0] = "6"
	if again, _ := FromOutgoingContext(ctx); again["a"][0] != "1" || len(again["a"]) != 2 || len(md["a"]) != 2 {
		t.Fatal(again, md)
	}
	incoming := NewIncomingContext(context.Background(), MD{"X-Mixed": {"1"}})
	if got, _ := FromIncomingContext(incoming); got.Get("x-mixed")[0] != "1" || ValueFromIncomingContext(incoming, "x-mixed")[0] != "1" {
		t.Fatal(got)
	}
	if _, ok := FromIncomingContext(context.Background()); ok {
		t.Fatal()
	}
	if joined := Join(md, Pairs("a", "3", "c", "4")); len(joined["a"]) != 3 || joined.Len() != 2 {
		t.Fatal(joined)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name without a value")
		}
	}()
	Pairs("a")
}
