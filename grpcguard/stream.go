package grpcguard

import (
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

var errSent = errors.New("grpcguard: the headers have been sent")

// A stream keeps the headers and trailers of a handler: they are sent with its answer, or not at
// all. It is safe for concurrent use.
type stream struct {
	grpc.ServerTransportStream // of the call

	mu              sync.Mutex
	header, trailer metadata.MD
	sent            bool // as far as the handler knows
}

// SetHeader implements grpc.ServerTransportStream.
func (s *stream) SetHeader(md metadata.MD) error { return s.addHeader(md, false) }

// SendHeader implements grpc.ServerTransportStream. It sends nothing.
func (s *stream) SendHeader(md metadata.MD) error { return s.addHeader(md, true) }

func (s *stream) addHeader(md metadata.MD, send bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent {
		return errSent
	}
	s.header, s.sent = metadata.Join(s.header, md), send
	return nil
}

// SetTrailer implements grpc.ServerTransportStream.
func (s *stream) SetTrailer(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

// release passes the handler's headers and trailers to the call. The client may have
// left.
func (s *stream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.ServerTransportStream.SetHeader(s.header)
	_ = s.ServerTransportStream.SetTrailer(s.trailer)
}
