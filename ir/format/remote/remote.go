// Package remote reads files of tensors over HTTP by ranges: only the requested parts are fetched.
//
//	r, err := remote.Open(ctx, "https://example.org/model.safetensors", nil)
//	f, err := safetensors.OpenAt(r, r.Size())
//
// Its input is an address, its output a [File], an [io.ReaderAt].
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// ErrRanges is the kind of the errors for a server that does not send ranges of the file, or whose file
// has changed since it was opened.
var ErrRanges = errors.New("the server sends no ranges of the file")

// Small reads, as of headers, are answered from blocks, a few of which are cached.
const (
	blockBytes = 256 << 10
	keptBlocks = 16
)

// File is a file on a server. It may be used by several goroutines.
type File struct {
	ctx     context.Context
	client  *http.Client
	address string
	size    int64
	tag     string // the version of the file

	lock   sync.Mutex
	blocks map[int64][]byte
	order  []int64 // of the kept blocks, the oldest first
}

// Open asks the server for the first bytes and the size of a file. The context bounds all reads. A nil
// client is [http.DefaultClient]. The error is of kind [ErrRanges] or that of the connection.
func Open(ctx context.Context, address string, client *http.Client) (*File, error) {
	if client == nil {
		client = http.DefaultClient
	}
	f := &File{ctx: ctx, client: client, address: address, size: -1, blocks: map[int64][]byte{}}
	first, err := f.fetch(0, blockBytes)
	if err != nil {
		return nil, err
	}
	f.keep(0, first)
	return f, nil
}

// Size returns the number of bytes of the file.
func (f *File) Size() int64 { return f.size }

// ReadAt reads from an offset, as [io.ReaderAt] says.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	if f == nil {
		return 0, errors.New("remote: the file is nil: it must be from Open")
	}
	if at < 0 {
		return 0, fmt.Errorf("remote: offset %d", at)
	}
	if at >= f.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), f.size-at)]
	done := 0
	for done < len(want) {
		n, err := f.some(want[done:], at+int64(done))
		if err != nil {
			return done, err
		}
		done += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// some reads some bytes: by a request of their own if they are many, and otherwise of a block.
func (f *File) some(p []byte, at int64) (int, error) {
	if len(p) >= blockBytes {
		data, err := f.fetch(at, int64(len(p)))
		return copy(p, data), err
	}
	number := at / blockBytes
	block, err := f.block(number)
	return copy(p, block[min(at-number*blockBytes, int64(len(block))):]), err
}

func (f *File) block(number int64) ([]byte, error) {
	f.lock.Lock()
	block, ok := f.blocks[number]
	f.lock.Unlock()
	if ok {
		return block, nil
	}
	block, err := f.fetch(number*blockBytes, blockBytes)
	if err == nil {
		f.keep(number, block)
	}
	return block, err
}

func (f *File) keep(number int64, block []byte) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.blocks[number] == nil {
		f.order = append(f.order, number)
	}
	f.blocks[number] = block
	if len(f.order) > keptBlocks {
		delete(f.blocks, f.order[0])
		f.order = f.order[1:]
	}
}

// fetch asks for n bytes from an offset, fewer at the end of the file. The first answer gives the size.
func (f *File) fetch(at, n int64) ([]byte, error) {
	if f.size >= 0 {
		n = min(n, f.size-at)
	}
	r, err := http.NewRequestWithContext(f.ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+n-1))
	answer, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() // read below
	from, to, size, err := contentRange(answer)
	if err != nil {
		return nil, err
	}
	tag := answer.Header.Get("ETag")
	switch {
	case f.size < 0:
		f.size, f.tag = size, tag
	case size != f.size || tag != f.tag:
		return nil, fmt.Errorf("%w: %s has changed", ErrRanges, f.address)
	}
	if want := min(n, f.size-at); from != at || to-from+1 != want {
		return nil, fmt.Errorf("%w: asked for bytes %d to %d of %s, got %d to %d", ErrRanges, at, at+want-1, f.address, from, to)
	}
	data := make([]byte, to-from+1)
	if _, err := io.ReadFull(answer.Body, data); err != nil {
		return nil, fmt.Errorf("%s: %w", f.address, err)
	}
	return data, nil
}

// contentRange reads the bounds that an answer says, "bytes 0-99/1234".
func contentRange(answer *http.Response) (from, to, size int64, err error) {
	text := answer.Header.Get("Content-Range")
	bounds, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, last, also := strings.Cut(bounds, "-")
	from, err1 := strconv.ParseInt(first, 10, 62)
	to, err2 := strconv.ParseInt(last, 10, 62)
	size, err3 := strconv.ParseInt(total, 10, 62)
	if answer.StatusCode != http.StatusPartialContent || !ok || !also || errors.Join(err1, err2, err3) != nil || from < 0 || to < from || to >= size {
		return 0, 0, 0, fmt.Errorf("%w: %s: %s, Content-Range %q", ErrRanges, answer.Request.URL, answer.Status, text)
	}
	return from, to, size, nil
}
