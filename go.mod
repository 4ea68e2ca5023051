module github.com/rlx-go/rlx

go 1.26

require github.com/x448/float16 v0.8.4
