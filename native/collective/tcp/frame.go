package tcp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// kind is the kind of a frame.
type kind uint32

const (
	data  kind = iota + 1 // a part of a collective
	abort                 // the sender has ended the group; the text is the reason
	bye                   // the sender has closed the group and sends nothing more
)

// frame is the header of a message.
type frame struct {
	kind   kind
	group  uint64 // the group, a hash of how it was split
	number int64  // of the collective in the group
	phase  uint32 // of the collective
	length int64  // bytes of data that follow
	text   string // the call, or why the group was aborted
}

const (
	magic     = 0x786c7201 // "rlx" and the version of the protocol
	headBytes = 40
	maxText   = 4096
)

// appendTo appends the encoded frame.
func (f *frame) appendTo(b []byte) []byte {
	text := f.text[:min(len(f.text), maxText)]
	le := binary.LittleEndian
	b = le.AppendUint32(b, magic)
	b = le.AppendUint32(b, uint32(f.kind))
	b = le.AppendUint64(b, f.group)
	b = le.AppendUint64(b, uint64(f.number))
	b = le.AppendUint32(b, f.phase)
	b = le.AppendUint32(b, uint32(len(text)))
	b = le.AppendUint64(b, uint64(f.length))
	return append(b, text...)
}

// readFrame reads a frame without the data that follows.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	le := binary.LittleEndian
	f := frame{
		kind: kind(le.Uint32(head[4:])), group: le.Uint64(head[8:]), number: int64(le.Uint64(head[16:])),
		phase: le.Uint32(head[24:]), length: int64(le.Uint64(head[32:])),
	}
	text := le.Uint32(head[28:])
	if le.Uint32(head[:]) != magic || f.kind < data || f.kind > bye || text > maxText || f.length < 0 {
		return f, fmt.Errorf("the message begins with %x, not as this protocol requires", head[:8])
	}
	b := make([]byte, text)
	if _, err := io.ReadFull(r, b); err != nil {
		return f, err
	}
	f.text = string(b)
	return f, nil
}

// write sends a frame and its data in one call of the system where it can.
func (f *frame) write(to net.Conn, payload []byte) error {
	f.length = int64(len(payload))
	parts := net.Buffers{f.appendTo(make([]byte, 0, headBytes+len(f.text))), payload}
	_, err := parts.WriteTo(to)
	return err
}
