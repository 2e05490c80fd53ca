package grpc

import (
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// receiveDefault is the largest message that is received unless the program says otherwise: 4 MiB. What is sent has no limit.
const (
	receiveDefault = 4 << 20
	sendDefault    = math.MaxInt32
)

// callInfo is what the options of a call come to.
type callInfo struct {
	receiveMax, sendMax int
	compressor          string
	oldCompressor       Compressor
	oldDecompressor     Decompressor
	subtype             string
	coder               coder
	coderIsSet          bool
	creds               creds.PerRPCCredentials
	// What the caller wants to know.
	wantsHeader bool
	failFast    bool
}

// outcome is how a call went.
type outcome struct {
	header, trailer metadata.MD
	err             error
}

// CallOption is about one call.
type CallOption interface {
	before(*callInfo) error
	after(*callInfo, *outcome)
}

// EmptyCallOption does nothing. It can be embedded.
type EmptyCallOption struct{}

func (EmptyCallOption) before(*callInfo) error    { return nil }
func (EmptyCallOption) after(*callInfo, *outcome) {}

// StaticMethod says that the name of the method is a constant.
func StaticMethod() CallOption { return StaticMethodCallOption{} }

// StaticMethodCallOption does nothing.
type StaticMethodCallOption struct{ EmptyCallOption }

// Header writes to md what comes before the reply.
func Header(md *metadata.MD) CallOption { return HeaderCallOption{HeaderAddr: md} }

// HeaderCallOption is that of Header.
type HeaderCallOption struct{ HeaderAddr *metadata.MD }

func (o HeaderCallOption) before(c *callInfo) error {
	c.wantsHeader = true
	return nil
}

func (o HeaderCallOption) after(_ *callInfo, out *outcome) { *o.HeaderAddr = out.header }

// Trailer writes to md what comes behind the reply.
func Trailer(md *metadata.MD) CallOption { return TrailerCallOption{TrailerAddr: md} }

// TrailerCallOption is that of Trailer.
type TrailerCallOption struct{ TrailerAddr *metadata.MD }

func (o TrailerCallOption) before(*callInfo) error          { return nil }
func (o TrailerCallOption) after(_ *callInfo, out *outcome) { *o.TrailerAddr = out.trailer }

// Peer writes to p which server answers.
func Peer(p *peer.Peer) CallOption { return PeerCallOption{PeerAddr: p} }

// PeerCallOption is that of Peer.
type PeerCallOption struct{ PeerAddr *peer.Peer }

func (o PeerCallOption) before(*callInfo) error    { return nil }
func (o PeerCallOption) after(*callInfo, *outcome) { *o.PeerAddr = *here }

// WaitForReady does nothing: no call waits for a connection.
func WaitForReady(waitForReady bool) CallOption { return FailFastCallOption{FailFast: !waitForReady} }

// FailFast does nothing.
//
// Deprecated: it is the opposite of WaitForReady.
func FailFast(failFast bool) CallOption { return FailFastCallOption{FailFast: failFast} }

// FailFastCallOption is that of WaitForReady.
type FailFastCallOption struct{ FailFast bool }

func (o FailFastCallOption) before(c *callInfo) error {
	c.failFast = o.FailFast
	return nil
}
func (o FailFastCallOption) after(*callInfo, *outcome) {}

// OnFinish is called when the call is over.
func OnFinish(onFinish func(err error)) CallOption { return OnFinishCallOption{OnFinish: onFinish} }

// OnFinishCallOption is that of OnFinish.
type OnFinishCallOption struct{ OnFinish func(error) }

func (o OnFinishCallOption) before(*callInfo) error          { return nil }
func (o OnFinishCallOption) after(_ *callInfo, out *outcome) { o.OnFinish(out.err) }

// MaxCallRecvMsgSize limits what is received.
func MaxCallRecvMsgSize(bytes int) CallOption { return MaxRecvMsgSizeCallOption{MaxRecvMsgSize: bytes} }

// MaxRecvMsgSizeCallOption is that of MaxCallRecvMsgSize.
type MaxRecvMsgSizeCallOption struct{ MaxRecvMsgSize int }

func (o MaxRecvMsgSizeCallOption) before(c *callInfo) error {
	c.receiveMax = o.MaxRecvMsgSize
	return nil
}
func (o MaxRecvMsgSizeCallOption) after(*callInfo, *outcome) {}

// MaxCallSendMsgSize limits what is sent.
func MaxCallSendMsgSize(bytes int) CallOption { return MaxSendMsgSizeCallOption{MaxSendMsgSize: bytes} }

// MaxSendMsgSizeCallOption is that of MaxCallSendMsgSize.
type MaxSendMsgSizeCallOption struct{ MaxSendMsgSize int }

func (o MaxSendMsgSizeCallOption) before(c *callInfo) error {
	c.sendMax = o.MaxSendMsgSize
	return nil
}
func (o MaxSendMsgSizeCallOption) after(*callInfo, *outcome) {}

// CallAuthority does nothing: the address is not used.
func CallAuthority(authority string) CallOption {
	return AuthorityOverrideCallOption{Authority: authority}
}

// AuthorityOverrideCallOption is that of CallAuthority.
type AuthorityOverrideCallOption struct{ Authority string }

func (AuthorityOverrideCallOption) before(*callInfo) error    { return nil }
func (AuthorityOverrideCallOption) after(*callInfo, *outcome) {}

// PerRPCCredentials add metadata to the call.
func PerRPCCredentials(c creds.PerRPCCredentials) CallOption {
	return PerRPCCredsCallOption{Creds: c}
}

// PerRPCCredsCallOption is that of PerRPCCredentials.
type PerRPCCredsCallOption struct {
	Creds creds.PerRPCCredentials
}

func (o PerRPCCredsCallOption) before(c *callInfo) error {
	c.creds = o.Creds
	return nil
}
func (o PerRPCCredsCallOption) after(*callInfo, *outcome) {}

// UseCompressor compresses what is sent.
func UseCompressor(name string) CallOption { return CompressorCallOption{CompressorType: name} }

// CompressorCallOption is that of UseCompressor.
type CompressorCallOption struct{ CompressorType string }

func (o CompressorCallOption) before(c *callInfo) error {
	c.compressor = o.CompressorType
	return nil
}
func (o CompressorCallOption) after(*callInfo, *outcome) {}

// CallContentSubtype chooses a codec by its name.
func CallContentSubtype(contentSubtype string) CallOption {
	return ContentSubtypeCallOption{ContentSubtype: lowered(contentSubtype)}
}

// ContentSubtypeCallOption is that of CallContentSubtype.
type ContentSubtypeCallOption struct{ ContentSubtype string }

func (o ContentSubtypeCallOption) before(c *callInfo) error {
	c.subtype = o.ContentSubtype
	return nil
}
func (o ContentSubtypeCallOption) after(*callInfo, *outcome) {}

// ForceCodec has a codec that need not be registered.
func ForceCodec(codec encoding.Codec) CallOption { return ForceCodecCallOption{Codec: codec} }

// ForceCodecCallOption is that of ForceCodec.
type ForceCodecCallOption struct{ Codec encoding.Codec }

func (o ForceCodecCallOption) before(c *callInfo) error {
	if c.subtype == "" {
		c.subtype = lowered(o.Codec.Name())
	}
	c.coder, c.coderIsSet = coder{bytes: o.Codec}, true
	return nil
}
func (o ForceCodecCallOption) after(*callInfo, *outcome) {}

// ForceCodecV2 has a codec that need not be registered.
func ForceCodecV2(codec encoding.CodecV2) CallOption { return ForceCodecV2CallOption{CodecV2: codec} }

// ForceCodecV2CallOption is that of ForceCodecV2.
type ForceCodecV2CallOption struct{ CodecV2 encoding.CodecV2 }

func (o ForceCodecV2CallOption) before(c *callInfo) error {
	if c.subtype == "" {
		c.subtype = lowered(o.CodecV2.Name())
	}
	c.coder, c.coderIsSet = coder{buffers: o.CodecV2}, true
	return nil
}
func (o ForceCodecV2CallOption) after(*callInfo, *outcome) {}

// CallCustomCodec is ForceCodec with the old kind, and without a name on the wire.
//
// Deprecated: use ForceCodec.
func CallCustomCodec(codec Codec) CallOption { return CustomCodecCallOption{Codec: codec} }

// CustomCodecCallOption is that of CallCustomCodec.
type CustomCodecCallOption struct{ Codec Codec }

func (o CustomCodecCallOption) before(c *callInfo) error {
	c.coder, c.coderIsSet = coder{bytes: o.Codec}, true
	return nil
}
func (o CustomCodecCallOption) after(*callInfo, *outcome) {}

// MaxRetryRPCBufferSize does nothing: the host repeats calls.
func MaxRetryRPCBufferSize(bytes int) CallOption { return MaxRetryRPCBufferSizeCallOption{bytes} }

// MaxRetryRPCBufferSizeCallOption is that of MaxRetryRPCBufferSize.
type MaxRetryRPCBufferSizeCallOption struct{ MaxRetryRPCBufferSize int }

func (o MaxRetryRPCBufferSizeCallOption) before(*callInfo) error    { return nil }
func (o MaxRetryRPCBufferSizeCallOption) after(*callInfo, *outcome) {}

// prepare asks all options, and finds codec and compressor.
func (c *callInfo) prepare(cc *ClientConn, opts []CallOption) (*packer, error) {
	*c = callInfo{receiveMax: receiveDefault, sendMax: sendDefault, failFast: true}
	c.oldCompressor, c.oldDecompressor = cc.options.compressor, cc.options.decompressor
	if old := cc.options.codec; old != nil {
		c.coder, c.coderIsSet = coder{bytes: old}, true
	}
	for _, options := range [2][]CallOption{cc.options.callOptions, opts} {
		for _, option := range options {
			if err := option.before(c); err != nil {
				return nil, status.Convert(err).Err()
			}
		}
	}
	if !c.coderIsSet {
		found, ok := coderOf(c.subtype)
		if !ok {
			return nil, status.Errorf(codes.Internal, "grpc: there is no codec %q", c.subtype)
		}
		c.coder = found
	}
	if c.compressor == "" && c.oldCompressor == nil {
		return nil, nil
	}
	return packerOf(c.compressor, c.oldCompressor)
}

// finish tells all options how it went.
func (c *callInfo) finish(cc *ClientConn, opts []CallOption, out *outcome) {
	for _, option := range cc.options.callOptions {
		option.after(c, out)
	}
	for _, option := range opts {
		option.after(c, out)
	}
}
