// Package data holds the handwritten digits of the demos: 1,797 pictures of 8×8
// counts from 0 to 16 with their labels, the test part of "Optical Recognition
// of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning
// Repository, https://doi.org/10.24432/C50P49), used under CC BY 4.0.
package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed digits.csv.gz
var digits []byte

const (
	// Pixels is the number of counts in a picture, row by row.
	Pixels = 64
	// Count is the number of pictures.
	Count = 1797
	// TestCount is the number of pictures for testing only, the last ones.
	TestCount = 360
)

// Set is a number of digits.
type Set struct {
	// Images are the counts from 0 to 16, Pixels for each digit.
	Images []uint8
	// Labels are the digits, from 0 to 9.
	Labels []uint8
}

// Len returns the number of digits.
func (s Set) Len() int { return len(s.Labels) }

// Digits returns the digits for training and those for testing.
func Digits() (train, test Set, err error) {
	all, err := read()
	if err != nil {
		return Set{}, Set{}, fmt.Errorf("digits: %w", err)
	}
	n := Count - TestCount
	return Set{all.Images[:n*Pixels], all.Labels[:n]}, Set{all.Images[n*Pixels:], all.Labels[n:]}, nil
}

// Batch copies a training batch into images (len(labels) × Pixels) and labels: batch k holds the
// rows from k·len(labels) on, wrapping around at the end. The order is the same everywhere.
func (s Set) Batch(k int, images []float32, labels []int32) {
	for i := range labels {
		row := (k*len(labels) + i) % s.Len()
		labels[i] = int32(s.Labels[row])
		for j, v := range s.Images[row*Pixels : (row+1)*Pixels] {
			images[i*Pixels+j] = float32(v)
		}
	}
}

func read() (Set, error) {
	z, err := gzip.NewReader(bytes.NewReader(digits))
	if err != nil {
		return Set{}, err
	}
	var s Set
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != Pixels+1 {
			return Set{}, fmt.Errorf("line %d has %d fields; it must have %d", s.Len()+1, len(fields), Pixels+1)
		}
		var row [Pixels + 1]uint8
		for i, field := range fields {
			n, err := strconv.ParseUint(field, 10, 8)
			if err != nil {
				return Set{}, fmt.Errorf("line %d: %w", s.Len()+1, err)
			}
			row[i] = uint8(n)
		}
		s.Images, s.Labels = append(s.Images, row[:Pixels]...), append(s.Labels, row[Pixels])
	}
	if err := lines.Err(); err != nil {
		return Set{}, err
	}
	if s.Len() != Count {
		return Set{}, fmt.Errorf("%d rows; want %d", s.Len(), Count)
	}
	return s, nil
}
