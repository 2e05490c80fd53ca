//go:build !wasip1

package grpc

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func streamEcho(stream ServerStream) error {
	stream.SetTrailer(metadata.Pairs("tail", "1"))
	for {
		m := new(message)
		err := stream.RecvMsg(m)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if string(m.GetValue()) == "fail" {
			return status.Error(codes.Aborted, "as asked")
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

func open(t *testing.T, cc *ClientConn, ctx context.Context, options ...CallOption) *GenericClientStream[message, message] {
	t.Helper()
	stream, err := cc.NewStream(ctx, &serviceDesc.Streams[0], streamPath, options...)
	if err != nil {
		t.Fatal(err)
	}
	return &GenericClientStream[message, message]{ClientStream: stream}
}

func TestBothDirections(t *testing.T) {
	serve(t, &handlers{stream: streamEcho})
	stream := open(t, client(t), context.Background())
	text := strings.Repeat("x", 10_000)
	const count = 100
	go func() {
		for i := 0; i < count; i++ {
			if err := stream.Send(of(text)); err != nil {
				t.Error(err)
			}
		}
		stream.CloseSend()
	}()
	for i := 0; i < count; i++ {
		if m, err := stream.Recv(); err != nil || string(m.GetValue()) != text {
			t.Fatal(i, err)
		}
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	if header, err := stream.Header(); err != nil || header.Get("content-type") == nil || stream.Trailer().Get("tail")[0] != "1" {
		t.Fatal(header, err, stream.Trailer())
	}
	if err := stream.Send(of("")); err == nil {
		t.Error("sent behind the end")
	}
}

func TestTurns(t *testing.T) {
	serve(t, &handlers{stream: streamEcho})
	var trailer metadata.MD
	stream := open(t, client(t), context.Background(), Trailer(&trailer))
	for i := 0; i < 10; i++ {
		if err := stream.Send(of("a")); err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Recv(); err != nil || string(m.GetValue()) != "a" {
			t.Fatal(err)
		}
	}
	stream.Send(of("fail"))
	_, err := stream.Recv()
	wantCode(t, err, codes.Aborted, "as asked")
	if trailer.Get("tail")[0] != "1" {
		t.Error(trailer)
	}
	for stream.Send(of("a")) != io.EOF {
		time.Sleep(time.Millisecond)
	}
}

func TestOneDirection(t *testing.T) {
	serve(t, &handlers{stream: func(stream ServerStream) error {
		count := 0
		for {
			m := new(message)
			if err := stream.RecvMsg(m); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			count++
			if string(m.GetValue()) == "many" {
				for i := 0; i < 5; i++ {
					stream.SendMsg(m)
				}
				return nil
			}
		}
		if count == 0 {
			return nil
		}
		return stream.SendMsg(of(strings.Repeat("x", count)))
	}})
	cc := client(t)
	// One request, many replies.
	stream, err := cc.NewStream(context.Background(), &StreamDesc{ServerStreams: true}, streamPath)
	if err != nil {
		t.Fatal(err)
	}
	if stream.SendMsg(of("many")) != nil || stream.CloseSend() != nil {
		t.Fatal()
	}
	received := 0
	for m := new(message); stream.RecvMsg(m) == nil; {
		received++
	}
	if received != 5 {
		t.Fatal(received)
	}
	// Many requests, one reply.
	for _, count := range []int{3, 0} {
		inner, err := cc.NewStream(context.Background(), &StreamDesc{ClientStreams: true}, streamPath)
		if err != nil {
			t.Fatal(err)
		}
		up := &GenericClientStream[message, message]{ClientStream: inner}
		for i := 0; i < count; i++ {
			if err := up.Send(of("a")); err != nil {
				t.Fatal(err)
			}
		}
		m, err := up.CloseAndRecv()
		if count == 0 {
			wantCode(t, err, codes.Internal, "without a reply")
		} else if err != nil || len(m.GetValue()) != count {
			t.Fatal(m, err)
		}
	}
}

func TestHeadersComeBeforeMessages(t *testing.T) {
	next := make(chan bool)
	serve(t, &handlers{stream: func(stream ServerStream) error {
		stream.SetHeader(metadata.Pairs("a", "1"))
		stream.SendHeader(metadata.Pairs("b", "2"))
		if stream.SetHeader(metadata.Pairs("c", "3")) == nil {
			t.Error("set behind its sending")
		}
		<-next
		return nil
	}})
	stream := open(t, client(t), context.Background())
	header, err := stream.Header()
	if err != nil || header.Get("a")[0] != "1" || header.Get("b")[0] != "2" {
		t.Fatal(header, err)
	}
	close(next)
	if _, err := stream.Recv(); err != io.EOF {
		t.Fatal(err)
	}
}

func TestACancelledStreamEndsAtTheServer(t *testing.T) {
	ended := make(chan error, 1)
	serve(t, &handlers{stream: func(stream ServerStream) error {
		err := stream.RecvMsg(new(message))
		ended <- err
		return err
	}})
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan error, 1)
	stream := open(t, client(t), ctx, OnFinish(func(err error) { finished <- err }))
	cancel()
	wantCode(t, <-ended, codes.Canceled, "")
	wantCode(t, <-finished, codes.Canceled, "")
	_, err := stream.Recv()
	wantCode(t, err, codes.Canceled, "")
}

func TestReceivingEndsWithTheDeadline(t *testing.T) {
	received := make(chan error, 1)
	serve(t, &handlers{stream: func(stream ServerStream) error {
		deadline, ok := stream.Context().Deadline()
		err := stream.RecvMsg(new(message))
		if !ok || time.Until(deadline) > 0 {
			t.Error(deadline)
		}
		received <- err
		return err
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := open(t, client(t), ctx).Recv()
	wantCode(t, err, codes.DeadlineExceeded, "")
	// Which comes first: the context, or the host that ends the call.
	if code := status.Code(<-received); code != codes.Canceled && code != codes.DeadlineExceeded {
		t.Error(code)
	}
}

func TestStreamInterceptorsAndUnknownServices(t *testing.T) {
	var order []string
	between := func(name string) StreamServerInterceptor {
		return func(srv any, ss ServerStream, info *StreamServerInfo, handler StreamHandler) error {
			order = append(order, name+info.FullMethod)
			return handler(srv, ss)
		}
	}
	before := func(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, streamer Streamer, opts ...CallOption) (ClientStream, error) {
		order = append(order, "c")
		return streamer(ctx, desc, cc, method, opts...)
	}
	serve(t, &handlers{stream: streamEcho}, ChainStreamInterceptor(between("1"), between("2")), UnknownServiceHandler(func(_ any, stream ServerStream) error {
		method, _ := MethodFromServerStream(stream)
		return status.Error(codes.DataLoss, method)
	}))
	cc := client(t, WithStreamInterceptor(before))
	stream := open(t, cc, context.Background())
	stream.CloseSend()
	if _, err := stream.Recv(); err != io.EOF || strings.Join(order, " ") != "c 1"+streamPath+" 2"+streamPath {
		t.Fatal(err, order)
	}
	wantCode(t, cc.Invoke(context.Background(), "/proxy.To/Other", of(""), of("")), codes.DataLoss, "/proxy.To/Other")
}
