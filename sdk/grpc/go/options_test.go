//go:build !wasip1

package grpc

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

func TestCompression(t *testing.T) {
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		if names, err := ClientSupportedCompressors(ctx); err != nil || len(names) != 1 || names[0] != "gzip" {
			t.Error(names, err)
		}
		return request, nil
	}, stream: streamEcho}, MaxRecvMsgSize(1<<20))
	text := strings.Repeat("x", 100_000)
	var header metadata.MD
	cc := client(t)
	reply, err := call(cc, context.Background(), text, UseCompressor(gzip.Name), Header(&header))
	if err != nil || reply != text || header.Get("grpc-encoding") != nil {
		t.Fatal(err, header)
	}
	stream := open(t, cc, context.Background(), UseCompressor(gzip.Name))
	for i := 0; i < 3; i++ {
		stream.Send(of(text))
		if m, err := stream.Recv(); err != nil || string(m.GetValue()) != text {
			t.Fatal(err)
		}
	}
	// What is small as it is sent may be too large.
	_, err = call(cc, context.Background(), strings.Repeat("x", 2<<20), UseCompressor(gzip.Name))
	wantCode(t, err, codes.ResourceExhausted, "1048576")
	_, err = call(cc, context.Background(), text, UseCompressor("lzma"))
	wantCode(t, err, codes.Internal, "lzma")
}

// textCodec is a codec that a program brings.
type textCodec struct{}

func (textCodec) Name() string { return "text" }

func (textCodec) Marshal(v any) ([]byte, error) { return prototext.Marshal(v.(proto.Message)) }

func (textCodec) Unmarshal(data []byte, v any) error {
	return prototext.Unmarshal(data, v.(proto.Message))
}

func TestCodecs(t *testing.T) {
	encoding.RegisterCodec(textCodec{})
	serve(t, &handlers{unary: echo})
	var header metadata.MD
	reply, err := call(client(t), context.Background(), "abc", CallContentSubtype("TEXT"), Header(&header))
	if err != nil || reply != "abc" || header.Get("content-type")[0] != "application/grpc+text" {
		t.Fatal(reply, err, header)
	}
	if reply, err = call(client(t), context.Background(), "abc", ForceCodec(textCodec{})); err != nil || reply != "abc" {
		t.Fatal(reply, err)
	}
	_, err = call(client(t), context.Background(), "abc", CallContentSubtype("other"))
	wantCode(t, err, codes.Internal, "other")
}

type token struct{ secure bool }

func (token) GetRequestMetadata(_ context.Context, uri ...string) (map[string]string, error) {
	return map[string]string{"Authorization": "Bearer " + uri[0]}, nil
}

func (t token) RequireTransportSecurity() bool { return t.secure }

func TestCredentialsOfCalls(t *testing.T) {
	serve(t, &handlers{unary: func(ctx context.Context, _ *message) (*message, error) {
		p, ok := peer.FromContext(ctx)
		if !ok || p.Addr == nil || p.AuthInfo.AuthType() != "insecure" {
			t.Error(p)
		}
		return of(strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",")), nil
	}})
	cc := client(t, WithPerRPCCredentials(token{}))
	if reply, err := call(cc, context.Background(), ""); err != nil || reply != "Bearer https://consumer.example:50051/test.Service" {
		t.Fatal(reply, err)
	}
	_, err := call(cc, context.Background(), "", PerRPCCredentials(token{true}))
	wantCode(t, err, codes.Unauthenticated, "")
	if _, err := NewClient("a"); err == nil {
		t.Error("no transport credentials")
	}
}

type recorder struct{ events []string }

func (r *recorder) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "trace", info.FullMethodName)
}
func (r *recorder) HandleRPC(_ context.Context, s stats.RPCStats) {
	r.events = append(r.events, strings.TrimPrefix(fmt.Sprintf("%T", s), "*stats."))
}
func (r *recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *recorder) HandleConn(context.Context, stats.ConnStats)                       {}

func TestStatistics(t *testing.T) {
	ofServer, ofClient := &recorder{}, &recorder{}
	serve(t, &handlers{unary: func(ctx context.Context, request *message) (*message, error) {
		if got := metadata.ValueFromIncomingContext(ctx, "trace"); len(got) != 1 || got[0] != unaryPath {
			t.Error(got)
		}
		return request, nil
	}}, StatsHandler(ofServer))
	if _, err := call(client(t, WithStatsHandler(ofClient)), context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ofClient.events, " "); got != "Begin OutHeader OutPayload InHeader InPayload InTrailer End" {
		t.Error(got)
	}
	if got := strings.Join(ofServer.events, " "); got != "Begin InHeader InPayload OutHeader OutPayload OutTrailer End" {
		t.Error(got)
	}
}

func TestTapRefuses(t *testing.T) {
	serve(t, &handlers{unary: echo}, InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
		return nil, fmt.Errorf("not %s", info.FullMethodName)
	}))
	_, err := call(client(t), context.Background(), "")
	wantCode(t, err, codes.PermissionDenied, unaryPath)
}

func TestStates(t *testing.T) {
	cc := client(t)
	if cc.GetState() != connectivity.Idle || cc.CanonicalTarget() != "dns:///consumer.example:50051" {
		t.Fatal(cc.GetState(), cc.CanonicalTarget())
	}
	changed := make(chan bool)
	go func() { changed <- cc.WaitForStateChange(context.Background(), connectivity.Idle) }()
	cc.Connect()
	if !<-changed || cc.GetState() != connectivity.Ready {
		t.Fatal(cc.GetState())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if cc.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal()
	}
	cc.Close()
	if cc.GetState() != connectivity.Shutdown || cc.Close() == nil {
		t.Fatal(cc.GetState())
	}
}

func TestServiceConfig(t *testing.T) {
	cc := client(t, WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [
		{"name": [{}], "maxResponseMessageBytes": 7},
		{"name": [{"service": "a.B"}], "timeout": "1.5s", "waitForReady": true, "retryPolicy": {"maxAttempts": 3}},
		{"name": [{"service": "a.B", "method": "C"}], "maxRequestMessageBytes": "9"}]}`))
	if c := cc.GetMethodConfig("/a.B/C"); *c.MaxReqSize != 9 || c.Timeout != nil {
		t.Error(c)
	}
	if c := cc.GetMethodConfig("/a.B/D"); c.Timeout.Milliseconds() != 1500 || !*c.WaitForReady {
		t.Error(c)
	}
	if c := cc.GetMethodConfig("/x.Y/Z"); *c.MaxRespSize != 7 {
		t.Error(c)
	}
	if _, err := NewClient("a", WithInsecure(), WithDefaultServiceConfig("{")); err == nil {
		t.Error("broken JSON")
	}
}
