//go:build !wasip1

package grpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service of the tests, as generated code describes one.

const service = "test.Service"

type message = wrapperspb.BytesValue

type handlers struct {
	unary  func(ctx context.Context, request *message) (*message, error)
	stream func(stream ServerStream) error
}

type tested interface{ isTested() }

func (*handlers) isTested() {}

var serviceDesc = ServiceDesc{
	ServiceName: service,
	HandlerType: (*tested)(nil),
	Methods: []MethodDesc{{
		MethodName: "Unary",
		Handler: func(srv any, ctx context.Context, dec func(any) error, interceptor UnaryServerInterceptor) (any, error) {
			request := new(message)
			if err := dec(request); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, request any) (any, error) {
				return srv.(*handlers).unary(ctx, request.(*message))
			}
			if interceptor == nil {
				return handle(ctx, request)
			}
			return interceptor(ctx, request, &UnaryServerInfo{Server: srv, FullMethod: "/test.Service/Unary"}, handle)
		},
	}},
	Streams: []StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream ServerStream) error { return srv.(*handlers).stream(stream) },
	}},
}

const (
	unaryPath  = "/test.Service/Unary"
	streamPath = "/test.Service/Stream"
)

// serve serves until the test ends.
func serve(t *testing.T, h *handlers, options ...ServerOption) *Server {
	t.Helper()
	s := NewServer(options...)
	s.RegisterService(&serviceDesc, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	for !nativeServes(service) {
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() {
		s.GracefulStop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func client(t *testing.T, options ...DialOption) *ClientConn {
	t.Helper()
	cc, err := NewClient("consumer.example:50051", append(options, WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func echo(_ context.Context, request *message) (*message, error) { return request, nil }

func of(text string) *message { return wrapperspb.Bytes([]byte(text)) }

// call makes a unary call.
func call(cc *ClientConn, ctx context.Context, text string, options ...CallOption) (string, error) {
	reply := new(message)
	err := cc.Invoke(ctx, unaryPath, of(text), reply, options...)
	return string(reply.GetValue()), err
}

func wantCode(t *testing.T, err error, code codes.Code, within string) {
	t.Helper()
	s, ok := status.FromError(err)
	if !ok || s.Code() != code || !strings.Contains(s.Message(), within) {
		t.Fatalf("%v, not %v with %q", err, code, within)
	}
}

func TestUnary(t *testing.T) {
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if got := md.Get("X-Name"); len(got) != 2 || got[0] != "a" || got[1] != "b" {
			t.Error(md)
		}
		if got := md.Get("raw-bin"); len(got) != 1 || got[0] != "\x00\xff" {
			t.Errorf("%q", got)
		}
		if method, _ := Method(ctx); method != unaryPath {
			t.Error(method)
		}
		SetHeader(ctx, metadata.Pairs("x-head", "1"))
		SetTrailer(ctx, metadata.Pairs("x-tail-bin", "\x01"))
		return request, nil
	}}, MaxRecvMsgSize(16<<20))
	ctx := metadata.NewOutgoingContext(context.Background(), metadata.Pairs("X-Name", "a", "raw-bin", "\x00\xff", "te", "dropped"))
	ctx = metadata.AppendToOutgoingContext(ctx, "x-name", "b")
	var header, trailer metadata.MD
	for _, length := range []int{0, 1, 1 << 10, 1 << 20, 9 << 20} {
		text := strings.Repeat("x", length)
		reply, err := call(client(t), ctx, text, Header(&header), Trailer(&trailer), MaxCallRecvMsgSize(16<<20))
		if err != nil || reply != text {
			t.Fatal(length, err)
		}
		if header.Get("x-head")[0] != "1" || header.Get("content-type")[0] != "application/grpc" || trailer.Get("x-tail-bin")[0] != "\x01" {
			t.Fatal(header, trailer)
		}
	}
}

func TestStatusWithDetails(t *testing.T) {
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		SetTrailer(ctx, metadata.Pairs("why", "so"))
		switch string(request.GetValue()) {
		case "plain":
			return nil, errors.New("no status: 100 % ä\n")
		case "context":
			return nil, context.DeadlineExceeded
		}
		s, err := status.New(codes.FailedPrecondition, "later").WithDetails(durationpb.New(time.Second))
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	}})
	var trailer metadata.MD
	_, err := call(client(t), context.Background(), "", Trailer(&trailer))
	wantCode(t, err, codes.FailedPrecondition, "later")
	details := status.Convert(err).Details()
	if len(details) != 1 || details[0].(*durationpb.Duration).AsDuration() != time.Second || trailer.Get("why")[0] != "so" {
		t.Fatal(details, trailer)
	}
	_, err = call(client(t), context.Background(), "plain")
	wantCode(t, err, codes.Unknown, "no status: 100 % ä\n")
	_, err = call(client(t), context.Background(), "context")
	wantCode(t, err, codes.DeadlineExceeded, "")
}

func TestWhatIsUnknown(t *testing.T) {
	serve(t, &handlers{unary: echo})
	cc := client(t)
	wantCode(t, cc.Invoke(context.Background(), "/test.Service/Other", of(""), of("")), codes.Unimplemented, "Other")
	if err := cc.Invoke(context.Background(), unaryPath[1:], of(""), of("")); err != nil {
		t.Error(err)
	}
	wantCode(t, cc.Invoke(context.Background(), "/test.Other/Unary", of(""), of("")), codes.Unavailable, "`calls` does not name")
	wantCode(t, cc.Invoke(context.Background(), unaryPath, 1, of("")), codes.Internal, "int")
	wantCode(t, cc.Invoke(metadata.AppendToOutgoingContext(context.Background(), "bad", "\n"), unaryPath, of(""), of("")), codes.Internal, "bad")
	cc.Close()
	_, err := call(cc, context.Background(), "")
	wantCode(t, err, codes.Canceled, "closed")
}

func TestAPanicIsInternal(t *testing.T) {
	serve(t, &handlers{unary: func(context.Context, *message) (*message, error) { panic("on purpose") }})
	_, err := call(client(t), context.Background(), "")
	wantCode(t, err, codes.Internal, "")
}

func TestInterceptorsStandInTheirOrder(t *testing.T) {
	var order []string
	between := func(name string) UnaryServerInterceptor {
		return func(ctx context.Context, req any, info *UnaryServerInfo, handler UnaryHandler) (any, error) {
			order = append(order, name)
			return handler(ctx, req)
		}
	}
	before := func(name string) UnaryClientInterceptor {
		return func(ctx context.Context, method string, req, reply any, cc *ClientConn, invoker UnaryInvoker, opts ...CallOption) error {
			order = append(order, name)
			return invoker(ctx, method, req, reply, cc, opts...)
		}
	}
	serve(t, &handlers{unary: echo}, ChainUnaryInterceptor(between("s2"), between("s3")), UnaryInterceptor(between("s1")))
	cc := client(t, WithChainUnaryInterceptor(before("c2"), before("c3")), WithUnaryInterceptor(before("c1")))
	if _, err := call(cc, context.Background(), ""); err != nil || strings.Join(order, " ") != "c1 c2 c3 s1 s2 s3" {
		t.Fatal(order, err)
	}
}

func TestTheContextOfAHandler(t *testing.T) {
	var kept context.Context
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute || ctx.Err() != nil {
			t.Error(deadline, ok, ctx.Err())
		}
		child, cancel := context.WithCancel(ctx)
		cancel()
		if child.Err() == nil || ctx.Err() != nil {
			t.Error(child.Err(), ctx.Err())
		}
		kept = ctx
		return request, nil
	}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := call(client(t), ctx, ""); err != nil {
		t.Fatal(err)
	}
	for kept.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	<-kept.Done()
}

func TestDeadlineAndCancellation(t *testing.T) {
	entered, left := make(chan bool, 8), make(chan error, 8)
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		entered <- true
		if string(request.GetValue()) == "sleep" {
			time.Sleep(50 * time.Millisecond)
			return request, nil
		}
		<-ctx.Done()
		left <- ctx.Err()
		return nil, ctx.Err()
	}})
	for _, text := range []string{"wait", "sleep"} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		begin := time.Now()
		_, err := call(client(t), ctx, text)
		cancel()
		wantCode(t, err, codes.DeadlineExceeded, "")
		if took := time.Since(begin); took > 45*time.Millisecond {
			t.Error(took)
		}
		<-entered
	}
	if err := <-left; err != context.DeadlineExceeded {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-entered
		cancel()
	}()
	_, err := call(client(t), ctx, "sleep")
	wantCode(t, err, codes.Canceled, "")
	_, err = call(client(t), ctx, "sleep")
	wantCode(t, err, codes.Canceled, "")
	ctx, cancel = context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	_, err = call(client(t), ctx, "sleep")
	wantCode(t, err, codes.DeadlineExceeded, "")
	cc := client(t, WithDefaultServiceConfig(`{"methodConfig": [{"name": [{"service": "test.Service"}], "timeout": "0.01s"}]}`))
	_, err = call(cc, context.Background(), "sleep")
	wantCode(t, err, codes.DeadlineExceeded, "")
}

func TestCallsOverlap(t *testing.T) {
	serve(t, &handlers{unary: func(_ context.Context, request *message) (*message, error) {
		time.Sleep(50 * time.Millisecond)
		return request, nil
	}})
	cc, done, begin := client(t), make(chan error), time.Now()
	for i := 0; i < 2; i++ {
		go func() {
			_, err := call(cc, context.Background(), "")
			done <- err
		}()
	}
	for i := 0; i < 2; i++ {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(begin); took > 90*time.Millisecond {
		t.Error(took)
	}
}

func TestLimits(t *testing.T) {
	serve(t, &handlers{unary: echo}, MaxRecvMsgSize(200))
	_, err := call(client(t), context.Background(), strings.Repeat("x", 300))
	wantCode(t, err, codes.ResourceExhausted, "200")
	_, err = call(client(t), context.Background(), strings.Repeat("x", 100), MaxCallRecvMsgSize(50))
	wantCode(t, err, codes.ResourceExhausted, "50")
	_, err = call(client(t, WithDefaultCallOptions(MaxCallSendMsgSize(50))), context.Background(), strings.Repeat("x", 100))
	wantCode(t, err, codes.ResourceExhausted, "50")
}

// raw answers in place of a server.
func raw(t *testing.T, body []byte, trailers ...string) {
	nativeEdge[service] = func(x exchange) error {
		for {
			if _, err := x.read(context.Background(), make([]byte, 100), true); err != nil {
				break
			}
		}
		x.setHeader("content-type", "application/grpc")
		x.write(body)
		for i := 0; i+1 < len(trailers); i += 2 {
			x.setTrailer(trailers[i], trailers[i+1])
		}
		return nil
	}
	t.Cleanup(func() { delete(nativeEdge, service) })
}

func TestBadReplies(t *testing.T) {
	ok := []string{"grpc-status", "0"}
	for _, one := range []struct {
		name     string
		body     []byte
		trailers []string
		code     codes.Code
		within   string
	}{
		{"nothing", nil, ok, codes.Internal, "without a reply"},
		{"no status", []byte{0, 0, 0, 0, 0}, nil, codes.Internal, "no grpc-status"},
		{"broken head", []byte{0, 0}, ok, codes.Internal, "broke off"},
		{"broken message", []byte{0, 0, 0, 0, 9, 1}, ok, codes.Internal, "broke off"},
		{"broken and failed", []byte{0, 0, 0, 0, 9, 1}, []string{"grpc-status", "13", "grpc-message", "b%72oke"}, codes.Internal, "broke"},
		{"bad flag", []byte{7, 0, 0, 0, 0}, ok, codes.Internal, "flag"},
		{"two replies", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ok, codes.Internal, "more than one"},
		{"no message", []byte{0, 0, 0, 0, 1, 0xff}, ok, codes.Internal, "unmarshalling"},
		{"compressed", []byte{1, 0, 0, 0, 0}, ok, codes.Internal, "grpc-encoding"},
		{"strange status", []byte{0, 0, 0, 0, 0}, []string{"grpc-status", "x"}, codes.Unknown, "number"},
		{"new status", []byte{0, 0, 0, 0, 0}, []string{"grpc-status", "99"}, codes.Code(99), ""},
		{"long", []byte{0, 0xff, 0, 0, 0, 0}, ok, codes.ResourceExhausted, "4194304"},
	} {
		t.Run(one.name, func(t *testing.T) {
			raw(t, one.body, one.trailers...)
			_, err := call(client(t), context.Background(), "")
			wantCode(t, err, one.code, one.within)
		})
	}
}

// fakeExchange is a request that is not from here.
type fakeExchange struct {
	path             string
	rows             []byte
	body             bytes.Buffer
	status           int32
	headers_, tail   map[string]string
	reply            bytes.Buffer
	streamed, shares bool
}

func (x *fakeExchange) target() []byte  { return []byte(x.path) }
func (x *fakeExchange) headers() []byte { return x.rows }
func (x *fakeExchange) read(_ context.Context, into []byte, share bool) (int, error) {
	x.shares = share
	return x.body.Read(into)
}
func (x *fakeExchange) setStatus(code int32)          { x.status = code }
func (x *fakeExchange) setHeader(name, value string)  { x.headers_[name] = value }
func (x *fakeExchange) addHeader(name, value string)  { x.headers_[name] += value }
func (x *fakeExchange) setTrailer(name, value string) { x.tail[name] = value }
func (x *fakeExchange) addTrailer(name, value string) { x.tail[name] += value }
func (x *fakeExchange) stream()                       { x.streamed = true }
func (x *fakeExchange) write(bytes []byte) error {
	_, err := x.reply.Write(bytes)
	return err
}

func TestBadRequests(t *testing.T) {
	serve(t, &handlers{unary: echo, stream: func(stream ServerStream) error { return stream.RecvMsg(new(message)) }})
	for _, one := range []struct {
		name, path, header, value string
		body                      []byte
		status                    string
	}{
		{"good", unaryPath + "?query", "content-type", "application/grpc+proto", []byte{0, 0, 0, 0, 0}, "0"},
		{"nothing", unaryPath, "content-type", "application/grpc", nil, "13"},
		{"broken", unaryPath, "", "", []byte{0, 0, 0, 0, 9, 1}, "13"},
		{"broken stream", streamPath, "", "", []byte{0, 0, 0, 0, 9, 1}, "13"},
		{"bad flag", unaryPath, "", "", []byte{9, 0, 0, 0, 0}, "13"},
		{"long", unaryPath, "", "", []byte{0, 0xff, 0, 0, 0}, "8"},
		{"no message", unaryPath, "", "", []byte{0, 0, 0, 0, 1, 0xff}, "13"},
		{"bad timeout", unaryPath, "grpc-timeout", "soon", []byte{0, 0, 0, 0, 0}, "13"},
		{"unknown encoding", unaryPath, "grpc-encoding", "lzma", []byte{0, 0, 0, 0, 0}, "12"},
		{"unknown codec", unaryPath, "content-type", "application/grpc+xml", []byte{0, 0, 0, 0, 0}, "13"},
		{"unknown service", "/other.Service/Unary", "", "", nil, "12"},
		{"unknown method", "/test.Service/Other", "", "", nil, "12"},
		{"bad path", "/", "", "", nil, "12"},
	} {
		t.Run(one.name, func(t *testing.T) {
			x := &fakeExchange{path: one.path, headers_: map[string]string{}, tail: map[string]string{}}
			if one.header != "" {
				x.rows = wire.AppendField(nil, one.header, one.value)
			}
			x.body.Write(one.body)
			if err := answer(x); err != nil || x.tail["grpc-status"] != one.status {
				t.Fatal(err, x.tail)
			}
			if got := x.headers_["content-type"]; !strings.HasPrefix(got, "application/grpc") {
				t.Error(got)
			}
		})
	}
	x := &fakeExchange{path: unaryPath, headers_: map[string]string{}, rows: wire.AppendField(nil, "content-type", "text/html")}
	if err := answer(x); err != nil || x.status != 415 {
		t.Fatal(err, x.status)
	}
}
