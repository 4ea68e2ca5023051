package mil

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// A weight file begins with a header of 64 bytes: the number of blobs, and version 2. Each blob is
// a record of 64 bytes (a sentinel, the element type, size, offset, and the number of padding bits
// at the end) and the data; both are aligned to 64 bytes. A program refers to a blob by the offset
// of its record.
const (
	blobAlign    = 64
	blobSentinel = 0xDEADBEEF
	blobVersion  = 2
)

// blobs builds a weight file. Equal data are stored once, so that functions share weights.
type blobs struct {
	list    []*Value
	offsets []uint64
	byData  map[[sha256.Size]byte]uint64
	end     uint64
}

func newBlobs() *blobs { return &blobs{byData: map[[sha256.Size]byte]uint64{}, end: blobAlign} }

// add adds a constant to the file and returns its offset.
func (b *blobs) add(v *Value) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", v.Type.DType)
	h.Write(v.Data)
	key := [sha256.Size]byte(h.Sum(nil))
	if at, ok := b.byData[key]; ok {
		return at
	}
	at := b.end
	b.byData[key] = at
	b.list, b.offsets = append(b.list, v), append(b.offsets, at)
	b.end = aligned(at + blobAlign + uint64(len(v.Data)))
	return at
}

func aligned(at uint64) uint64 { return (at + blobAlign - 1) / blobAlign * blobAlign }

// write writes the file.
func (b *blobs) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<20)
	header := make([]byte, blobAlign)
	binary.LittleEndian.PutUint32(header, uint32(len(b.list)))
	binary.LittleEndian.PutUint32(header[4:], blobVersion)
	w.Write(header)
	for i, v := range b.list {
		w.Write(blobRecord(v, b.offsets[i]))
		w.Write(v.Data)
		size := uint64(len(v.Data))
		w.Write(make([]byte, aligned(size)-size))
	}
	return w.Flush() // returns the first error of all writes
}

// blobRecord returns the record of a constant whose data are at an offset.
func blobRecord(v *Value, at uint64) []byte {
	record := make([]byte, blobAlign)
	binary.LittleEndian.PutUint32(record, blobSentinel)
	binary.LittleEndian.PutUint32(record[4:], dtypes[v.Type.DType].blob)
	binary.LittleEndian.PutUint64(record[8:], uint64(len(v.Data)))
	binary.LittleEndian.PutUint64(record[16:], at+blobAlign)
	padding := 8*len(v.Data) - v.Type.Len()*dtypes[v.Type.DType].bits
	binary.LittleEndian.PutUint64(record[24:], uint64(padding))
	return record
}

// blobFile reads a weight file. Functions that share weights share their data.
type blobFile struct {
	file io.ReaderAt
	size uint64
	skip bool // do not read the data
	done map[uint64][]byte
}

// read returns the data of a constant of a type, given the offset of its record. The error is of
// kind [ErrPackage], or that of the file system.
func (f *blobFile) read(at uint64, t Type) ([]byte, error) {
	if at%blobAlign != 0 || at < blobAlign || at > f.size || f.size-at < blobAlign {
		return nil, fmt.Errorf("%w: weights at offset %d are outside the file of %d bytes", ErrPackage, at, f.size)
	}
	record := make([]byte, blobAlign)
	if _, err := f.file.ReadAt(record, int64(at)); err != nil {
		return nil, err
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(record[i:]) }
	if binary.LittleEndian.Uint32(record) != blobSentinel {
		return nil, fmt.Errorf("%w: weights at offset %d have no valid header", ErrPackage, at)
	}
	if got, want := binary.LittleEndian.Uint32(record[4:]), dtypes[t.DType].blob; got != want || want == 0 {
		return nil, fmt.Errorf("%w: weights at offset %d have type %d; they are used as %s", ErrPackage, at, got, t)
	}
	n, from := word(8), word(16)
	if want := uint64(t.DType.bytes(t.Len())); n != want || from%blobAlign != 0 || from > f.size || f.size-from < n {
		return nil, fmt.Errorf("%w: weights at offset %d have %d bytes from %d in a file of %d; %s needs %d", ErrPackage, at, n, from, f.size, t, want)
	}
	if data, again := f.done[at]; again || f.skip {
		return data, nil
	}
	data := make([]byte, n)
	if _, err := f.file.ReadAt(data, int64(from)); err != nil {
		return nil, err
	}
	if f.done == nil {
		f.done = map[uint64][]byte{}
	}
	f.done[at] = data
	return data, nil
}
