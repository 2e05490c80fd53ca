package grpc

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/internal/carry"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// unaryRoom is what a small reply, with its frame, has room in.
const unaryRoom = 2 << 10

// unaryCall has the rooms of a unary call, which are used again.
type unaryCall struct {
	ctx    context.Context
	wire   wireCall
	frames wire.Frames
	head   []byte
	info   callInfo
}

var unaryCalls = sync.Pool{New: func() any { return &unaryCall{frames: wire.Frames{Room: make([]byte, unaryRoom)}} }}

// More is that of wire.Source.
func (c *unaryCall) More(into []byte) (int, error) { return c.wire.read(c.ctx, into) }

// Invoke makes a unary call.
func (cc *ClientConn) Invoke(ctx context.Context, method string, args, reply any, opts ...CallOption) error {
	if cc.unary != nil {
		return cc.unary(ctx, method, args, reply, cc, invoke, opts...)
	}
	return invoke(ctx, method, args, reply, cc, opts...)
}

func invoke(ctx context.Context, method string, args, reply any, cc *ClientConn, opts ...CallOption) error {
	method = rooted(method)
	call := unaryCalls.Get().(*unaryCall)
	var out outcome
	pack, err := call.info.prepare(cc, opts)
	if err != nil {
		return err
	}
	var watch *clientWatch
	if len(cc.options.handlers) > 0 {
		ctx, watch = beginWatch(ctx, cc, method, &call.info, &StreamDesc{})
	}
	ctx, cancel := cc.configure(ctx, method, &call.info)
	call.ctx = ctx
	out.err = call.run(cc, method, args, reply, pack, watch, &out)
	recycle(call.wire)
	if cancel != nil {
		cancel()
	}
	watch.end(&out)
	if len(opts) > 0 || len(cc.options.callOptions) > 0 {
		call.info.finish(cc, opts, &out)
	}
	// A room that became large, or that the program may still look at, is left to the collector.
	if len(call.frames.Room) <= 64<<10 {
		*call = unaryCall{frames: wire.Frames{Room: call.frames.Room}, head: call.head[:0]}
		unaryCalls.Put(call)
	}
	return out.err
}

// rooted is the path of a method, which some write without its slash.
func rooted(method string) string {
	if method == "" || method[0] != '/' {
		return "/" + method
	}
	return method
}

// configure adds what the service configuration says of a method.
func (cc *ClientConn) configure(ctx context.Context, method string, info *callInfo) (context.Context, context.CancelFunc) {
	if len(cc.options.methods) == 0 {
		return ctx, nil
	}
	config := findConfig(cc.options.methods, method)
	if config.MaxReqSize != nil {
		info.sendMax = min(info.sendMax, *config.MaxReqSize)
	}
	if config.MaxRespSize != nil {
		info.receiveMax = min(info.receiveMax, *config.MaxRespSize)
	}
	if config.Timeout == nil {
		return ctx, nil
	}
	return context.WithTimeout(ctx, *config.Timeout)
}

func (c *unaryCall) run(cc *ClientConn, method string, args, reply any, pack *packer, watch *clientWatch, out *outcome) error {
	timeout, err := cc.start(c.ctx)
	if err != nil {
		return err
	}
	// The room for the reply is not needed before the request is with the host.
	frame, err := c.info.coder.frame(c.frames.Room, args, pack, c.info.sendMax)
	if err != nil {
		return err
	}
	if c.head, err = cc.appendHead(c.head, c.ctx, method, &c.info, pack); err != nil {
		return err
	}
	watch.outHeader(c.ctx, pack)
	c.wire, err = beginWhole(c.ctx, method, c.head, frame, timeout)
	if err != nil {
		return beginError(method, err)
	}
	defer c.wire.close()
	watch.outPayload(args, frame)
	if c.info.wantsHeader || watch != nil {
		if out.header, err = readHeader(c.ctx, c.wire); err != nil {
			return err
		}
		watch.inHeader(out.header)
	}
	message, compressed, err := c.frames.Next(c.info.receiveMax, c)
	if err == io.EOF {
		if err := c.status(out, watch); err != nil {
			return err
		}
		return status.Error(codes.Internal, "grpc: the call succeeded without a reply")
	}
	if err != nil {
		return c.broken(err, out, watch)
	}
	if err := decode(c.ctx, c.wire, &c.info, message, compressed, reply, out.header); err != nil {
		return err
	}
	watch.inPayload(reply, message)
	if c.frames.IsEmpty() {
		// Where the whole reply was there, so are the trailers.
		if rows, err := c.wire.trailers(); err == nil {
			return c.ended(rows, out, watch)
		}
	}
	switch _, _, err := c.frames.Next(c.info.receiveMax, c); err {
	case io.EOF:
		return c.status(out, watch)
	case nil:
		return status.Error(codes.Internal, "grpc: more than one reply")
	default:
		return c.broken(err, out, watch)
	}
}

// broken is why a reply cannot be read: what the host says of it, if that is an error.
func (c *unaryCall) broken(err error, out *outcome, watch *clientWatch) error {
	if err == io.ErrUnexpectedEOF {
		if err := c.status(out, watch); err != nil {
			return err
		}
	}
	return receiveError(err)
}

func (c *unaryCall) status(out *outcome, watch *clientWatch) error {
	rows, err := c.wire.trailers()
	if err != nil {
		return status.Errorf(codes.Internal, "grpc: no trailers: %v", err)
	}
	return c.ended(rows, out, watch)
}

func (c *unaryCall) ended(rows []byte, out *outcome, watch *clientWatch) error {
	if watch != nil || hasMore(rows) {
		out.trailer = wire.Metadata(rows)
	}
	watch.inTrailer(out.trailer)
	return statusOf(rows)
}

// start checks that a call may begin, and says how long it may take; -1: for ever.
func (cc *ClientConn) start(ctx context.Context) (timeout int64, err error) {
	if err := cc.open(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, status.FromContextError(err).Err()
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1, nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return 0, status.FromContextError(context.DeadlineExceeded).Err()
	}
	return int64(left), nil
}

// appendHead adds the metadata of a call.
func (cc *ClientConn) appendHead(rows []byte, ctx context.Context, method string, info *callInfo, pack *packer) ([]byte, error) {
	if info.subtype != "" {
		rows = wire.AppendField(rows, "content-type", contentTypeOf(info.subtype))
	}
	if pack != nil {
		rows = wire.AppendField(rows, "grpc-encoding", pack.name)
		rows = wire.AppendField(rows, "grpc-accept-encoding", pack.name)
	}
	if cc.options.userAgent != "" {
		rows = wire.AppendField(rows, "user-agent", cc.options.userAgent)
	}
	var err error
	if outgoing := carry.OutgoingOf(ctx); outgoing != nil {
		for name, values := range outgoing.Map {
			for _, value := range values {
				if rows, err = appendMetadata(rows, name, value); err != nil {
					return rows, err
				}
			}
		}
		for _, kv := range outgoing.Added {
			for i := 0; i+1 < len(kv); i += 2 {
				if rows, err = appendMetadata(rows, kv[i], kv[i+1]); err != nil {
					return rows, err
				}
			}
		}
	}
	if len(cc.options.perCall) == 0 && info.creds == nil {
		return rows, nil
	}
	return cc.appendCredentials(rows, ctx, method, info)
}

func appendMetadata(rows []byte, name, value string) ([]byte, error) {
	name = lowered(name)
	if wire.IsReserved(name) {
		return rows, nil
	}
	if !wire.IsValid(name, value) {
		return rows, status.Errorf(codes.Internal, "grpc: the metadata %q cannot be sent", name)
	}
	return wire.AppendField(rows, name, wire.Encode(name, value)), nil
}

func lowered(name string) string {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			return strings.ToLower(name)
		}
	}
	return name
}

func (cc *ClientConn) appendCredentials(rows []byte, ctx context.Context, method string, info *callInfo) ([]byte, error) {
	all := cc.options.perCall
	if info.creds != nil {
		if info.creds.RequireTransportSecurity() && !cc.isSecure() {
			return rows, status.Error(codes.Unauthenticated, "grpc: these credentials of a call require secure credentials of the transport")
		}
		all = append(all[:len(all):len(all)], info.creds)
	}
	ctx = context.WithValue(ctx, carry.RequestInfoKey{}, creds.RequestInfo{Method: method, AuthInfo: here.AuthInfo})
	audience := "https://" + strings.TrimSuffix(cc.endpoint(), ":443") + method[:max(strings.LastIndexByte(method, '/'), 0)]
	for _, one := range all {
		data, err := one.GetRequestMetadata(ctx, audience)
		if err != nil {
			if s, ok := status.FromError(err); ok {
				return rows, s.Err()
			}
			return rows, status.Errorf(codes.Unauthenticated, "grpc: credentials of a call: %v", err)
		}
		for name, value := range data {
			if rows, err = appendMetadata(rows, name, value); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// beginError is why the host did not begin a call.
func beginError(method string, err error) error {
	code := codes.Unavailable
	switch err {
	case e2big, emfile, eloop:
		code = codes.ResourceExhausted
	case einval:
		code = codes.Internal
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.Errorf(code, "grpc: calling %s: %v", method, err)
}

// receiveError is why a message cannot be read.
func receiveError(err error) error {
	switch err := err.(type) {
	case wire.TooLarge:
		return status.Error(codes.ResourceExhausted, err.Error())
	case errno:
		return status.Errorf(codes.Unavailable, "grpc: receiving: %v", err)
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	if err == io.ErrUnexpectedEOF {
		return status.Error(codes.Internal, "grpc: a message broke off")
	}
	return status.Error(codes.Internal, err.Error())
}

func readHeader(ctx context.Context, w wireCall) (metadata.MD, error) {
	rows, err := w.head(ctx)
	if err != nil {
		return nil, receiveError(err)
	}
	return wire.Metadata(rows), nil
}

// decode reads a message that came.
func decode(ctx context.Context, w wireCall, info *callInfo, message []byte, compressed bool, into any, header metadata.MD) error {
	if compressed {
		rows, err := w.head(ctx)
		if err != nil {
			return receiveError(err)
		}
		if message, err = unpack(fieldOf(rows, "grpc-encoding"), info.oldDecompressor, message, info.receiveMax); err != nil {
			return err
		}
	}
	return info.coder.unmarshal(message, into)
}

func fieldOf(rows []byte, wanted string) string {
	for {
		name, value, rest, ok := wire.NextField(rows)
		if !ok {
			return ""
		}
		if string(name) == wanted {
			return string(value)
		}
		rows = rest
	}
}
