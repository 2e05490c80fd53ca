//go:build !wasip1

package grpc

import (
	"context"
	"testing"

	"google.golang.org/grpc/internal/wire"
)

func BenchmarkAnswer(b *testing.B) {
	s := NewServer()
	s.RegisterService(&serviceDesc, &handlers{unary: echo})
	serving.Lock()
	serving.servers = append(serving.servers, s)
	serving.Unlock()
	defer s.Stop()
	frame, err := coder{}.frame(nil, of(string(make([]byte, 1<<10))), nil, sendDefault)
	if err != nil {
		b.Fatal(err)
	}
	x := &fakeExchange{path: unaryPath, rows: wire.AppendField(nil, "content-type", contentType), headers_: map[string]string{}, tail: map[string]string{}}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		x.body.Reset()
		x.body.Write(frame)
		x.reply.Reset()
		if err := answer(x); err != nil || x.tail["grpc-status"] != "0" {
			b.Fatal(err)
		}
	}
}

func BenchmarkInvoke(b *testing.B) {
	nativeEdge[service] = func(x exchange) error {
		x.write([]byte{0, 0, 0, 0, 0})
		x.setTrailer("grpc-status", "0")
		return nil
	}
	defer delete(nativeEdge, service)
	cc, err := NewClient("a", WithInsecure())
	if err != nil {
		b.Fatal(err)
	}
	request, reply := of(string(make([]byte, 1<<10))), new(message)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := cc.Invoke(context.Background(), unaryPath, request, reply); err != nil {
			b.Fatal(err)
		}
	}
}
