package main

import "encoding/binary"

// readSegments returns the initial memory that a data section describes.
func readSegments(data []byte) ([]byte, error) {
	count, n := binary.Uvarint(data)
	if n <= 0 {
		return nil, errDamaged
	}
	data = data[n:]
	var memory []byte
	for range count {
		// An active segment of memory 0: flags, i32.const, offset, end, size.
		if len(data) < 2 || data[0] != 0 || data[1] != 0x41 {
			return nil, errDamaged
		}
		offset, n := signed(data[2:])
		if n <= 0 || offset < 0 || offset > 1<<30 || len(data) < 3+n || data[2+n] != 0x0b {
			return nil, errDamaged
		}
		data = data[3+n:]
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, errDamaged
		}
		end := int(offset) + int(size)
		if end > len(memory) {
			memory = append(memory, make([]byte, end-len(memory))...)
		}
		copy(memory[offset:end], data[n:])
		data = data[n+int(size):]
	}
	return memory, nil
}

// gap is the number of zero bytes that cost as much as a new segment: memory starts as zeros, but
// the offset of a segment compresses worse than zeros do.
const gap = 64

// writeSegments returns the data section for an initial memory.
func writeSegments(memory []byte) []byte {
	var body []byte
	count := uint64(0)
	for at := 0; at < len(memory); {
		if memory[at] == 0 {
			at++
			continue
		}
		end, zeros := at, 0
		for i := at; i < len(memory) && zeros < gap; i++ {
			if memory[i] == 0 {
				zeros++
			} else {
				end, zeros = i+1, 0
			}
		}
		count++
		body = append(body, 0, 0x41)
		body = appendInt(body, int64(at))
		body = append(body, 0x0b)
		body = appendUint(body, uint64(end-at))
		body = append(body, memory[at:end]...)
		at = end
	}
	return append(appendUint(nil, count), body...)
}

// appendInt appends a signed LEB128 number (two's complement, unlike Go's varints).
func appendInt(out []byte, n int64) []byte {
	for n > 63 || n < -64 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n)&0x7f)
}

// signed decodes a signed LEB128 number. It returns its length in bytes, 0 if it is truncated.
func signed(data []byte) (n int64, size int) {
	for shift := 0; size < len(data) && shift < 64; shift += 7 {
		b := data[size]
		size++
		n |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift < 57 {
				n |= -1 << (shift + 7)
			}
			return n, size
		}
	}
	return 0, 0
}
