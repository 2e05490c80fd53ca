package grpc

import (
	"bytes"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

const unsupportedMediaType = 415

// answer answers a request.
func answer(x exchange) error {
	call := &serverCall{exchange: x}
	return call.answer()
}

// answer answers the request of its exchange. An error is one of the reply: it cannot be sent.
func (c *serverCall) answer() error {
	x := c.exchange
	path := x.target()
	if at := bytes.IndexByte(path, '?'); at >= 0 {
		path = path[:at]
	}
	err := c.readHeaders(x.headers())
	if err == errNotGRPC {
		x.setStatus(unsupportedMediaType)
		x.setHeader("content-type", "text/plain")
		return x.write([]byte("This is a gRPC service.\n"))
	}
	if err == nil {
		c.method, err = find(path)
	}
	if err == nil {
		err = c.prepare()
	}
	if err == nil {
		if c.method.unary != nil {
			err = c.answerUnary()
		} else {
			err = c.answerStream()
		}
	}
	return c.end(err)
}

type notGRPC struct{}

func (notGRPC) Error() string { return "grpc: another content-type" }

var errNotGRPC error = notGRPC{}

// readHeaders takes from the request's headers what the protocol says there.
func (c *serverCall) readHeaders(rows []byte) error {
	c.rows = rows
	for {
		name, value, rest, ok := wire.NextField(rows)
		if !ok {
			return nil
		}
		rows = rest
		switch string(name) {
		case "content-type":
			if c.subtype, ok = subtypeOf(value); !ok {
				return errNotGRPC
			}
		case "grpc-timeout":
			timeout, ok := wire.ParseTimeout(value)
			if !ok {
				return status.Errorf(codes.Internal, "grpc: the grpc-timeout %q is none", value)
			}
			c.deadline, c.hasDeadline = time.Now().Add(timeout), true
		case "grpc-encoding":
			c.receivePacker = string(value)
		}
	}
}

// prepare finds codec and compressors, and asks the handlers of statistics whether they want to know of the call.
func (c *serverCall) prepare() error {
	o := &c.method.server.options
	c.receiveMax, c.sendMax = o.receiveMax, o.sendMax
	if o.coderIsSet {
		c.coder = o.coder
	} else {
		found, ok := coderOf(c.subtype)
		if !ok {
			return status.Errorf(codes.Internal, "grpc: there is no codec %q", c.subtype)
		}
		c.coder = found
	}
	c.ctx = &c.base
	c.base.call = c
	if c.receivePacker != "" && c.receivePacker != encoding.Identity || o.compressor != nil {
		if err := c.preparePackers(); err != nil {
			return err
		}
	}
	if len(o.handlers) > 0 {
		c.ctx, c.watch = beginServerWatch(c.ctx, c)
	}
	if o.tap != nil {
		ctx, err := o.tap(c.ctx, &tap.Info{FullMethodName: c.method.path, Header: metadata.MD(c.Metadata()).Copy()})
		if err != nil {
			if _, ok := status.FromError(err); !ok {
				err = status.Error(codes.PermissionDenied, err.Error())
			}
			return err
		}
		c.ctx = ctx
	}
	return nil
}

// preparePackers answers as it was asked: with the compressor of the request, if there is no other.
func (c *serverCall) preparePackers() error {
	o := &c.method.server.options
	name := c.receivePacker
	if o.compressor != nil {
		c.pack = &packer{name: o.compressor.Type(), old: o.compressor}
	}
	if name == "" || name == encoding.Identity || o.decompressor != nil && o.decompressor.Type() == name {
		return nil
	}
	known := encoding.GetCompressor(name)
	if known == nil {
		return status.Errorf(codes.Unimplemented, "grpc: there is no decompressor %q", name)
	}
	if c.pack == nil {
		c.pack = &packer{name: name, new: known}
	}
	return nil
}

func (c *serverCall) answerUnary() error {
	c.unary = true
	message, err := c.next()
	if err == io.EOF {
		err = status.Error(codes.Internal, "grpc: a request without a message")
	}
	if err != nil {
		return receiveError(err)
	}
	decode := func(into any) error {
		if err := c.coder.unmarshal(message, into); err != nil {
			return err
		}
		c.watch.inPayload(into, message)
		return nil
	}
	reply, err := c.method.unary(c.method.service, c.ctx, decode, c.method.server.unary)
	if err != nil {
		return handlerError(err)
	}
	// The request has been read: nothing of it is in its room any more.
	frame, err := c.frame(c.frames.Room, reply)
	if err != nil {
		return err
	}
	c.writeHeaders()
	if err := c.exchange.write(frame); err != nil {
		return err
	}
	c.watch.outPayload(reply, frame)
	return nil
}

func (c *serverCall) answerStream() error {
	desc := c.method.stream
	if between := c.method.server.stream; between != nil {
		info := &StreamServerInfo{FullMethod: c.method.path, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
		return handlerError(between(c.method.service, c, info, desc.Handler))
	}
	return handlerError(desc.Handler(c.method.service, c))
}

// handlerError makes a status of what a handler failed with.
func handlerError(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.FromContextError(err).Err()
}

// end sends how the call ended.
func (c *serverCall) end(err error) error {
	// The client does not take the rest of a reply that cannot be written.
	if _, is := err.(errno); is {
		return err
	}
	c.mutex.Lock()
	c.over = true
	c.mutex.Unlock()
	c.writeHeaders()
	if len(c.trailer) > 0 {
		for name, values := range c.trailer {
			for _, value := range values {
				if !wire.IsReserved(name) && wire.IsValid(name, value) {
					c.exchange.addTrailer(name, wire.Encode(name, value))
				}
			}
		}
	}
	s, _ := status.FromError(err)
	setStatus(c.exchange, s)
	c.watch.outTrailer(c.trailer)
	c.watch.end(&outcome{err: err})
	c.base.end()
	if !c.hasMetadata {
		c.rows = nil
	}
	return nil
}

// writeHeaders sets those of the reply, once.
func (c *serverCall) writeHeaders() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.headersSent {
		return
	}
	c.headersSent = true
	c.exchange.setHeader("content-type", contentTypeOf(c.subtype))
	if c.pack != nil {
		c.exchange.setHeader("grpc-encoding", c.pack.name)
	}
	for name, values := range c.header {
		for _, value := range values {
			if !wire.IsReserved(name) && wire.IsValid(name, value) {
				c.exchange.addHeader(name, wire.Encode(name, value))
			}
		}
	}
	c.watch.outHeader(c.header, c.pack)
}

// accepts are the compressors that the caller understands.
func (c *serverCall) accepts() []string {
	var all []string
	for _, name := range strings.Split(fieldOf(c.rows, "grpc-accept-encoding"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}
