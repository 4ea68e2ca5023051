package rlx

import (
	"fmt"
	"hash/crc32"
	"maps"

	"github.com/rlx-go/rlx/native/safetensors"
)

// checksumKey is the key of the metadata of a checkpoint under which its checksum is. Files of earlier versions have none.
const checksumKey = "rlx.crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the exclusive or of the CRC-32Cs of tensors and of metadata, which may be added in any order. That of a tensor
// is over its name, a zero byte and its elements, that of metadata over "\x00", the key, a zero byte and the value. Fit of the
// npm package has the same.
type checksum uint32

// checksumOf returns the checksum of tensors alone.
func checksumOf(values map[string]Tensor) (c checksum) {
	for name, x := range values {
		c.addTensor(name, x)
	}
	return c
}

func (c *checksum) addTensor(name string, x Tensor) { c.add(name, x.Data) }

func (c *checksum) addMetadata(metadata map[string]string) {
	for key, value := range metadata {
		if key != checksumKey {
			c.add("\x00"+key, []byte(value))
		}
	}
}

func (c *checksum) add(name string, data []byte) {
	*c ^= checksum(crc32.Update(crc32.Checksum([]byte(name+"\x00"), castagnoli), castagnoli, data))
}

// String returns eight hexadecimal digits.
func (c checksum) String() string { return fmt.Sprintf("%08x", uint32(c)) }

// check returns an error of kind [safetensors.ErrDamaged] unless the metadata have this checksum or none.
func (c checksum) check(metadata map[string]string) error {
	c.addMetadata(metadata)
	if want, ok := metadata[checksumKey]; ok && want != c.String() {
		return fmt.Errorf("%w: %s of its metadata is %q: it must be that of its tensors and metadata, %q", safetensors.ErrDamaged, checksumKey, want, c)
	}
	return nil
}

// withChecksum returns the metadata of a checkpoint with its checksum.
func withChecksum(values map[string]Tensor, metadata map[string]string) map[string]string {
	c := checksumOf(values)
	c.addMetadata(metadata)
	out := map[string]string{}
	maps.Copy(out, metadata)
	out[checksumKey] = c.String()
	return out
}

// checked returns the tensors and metadata that were read from a checkpoint, with an error of kind [safetensors.ErrDamaged]
// if its checksum is wrong.
func checked(values map[string]Tensor, metadata map[string]string, err error) (map[string]Tensor, map[string]string, error) {
	if err != nil {
		return nil, nil, err
	}
	return values, metadata, checksumOf(values).check(metadata)
}
