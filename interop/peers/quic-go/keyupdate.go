package main

import (
	"context"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// keyUpdates counts the key updates this end initiated.
type keyUpdates struct{ local atomic.Int64 }

func (k *keyUpdates) count() int64 { return k.local.Load() }

func (k *keyUpdates) tracer(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return k }

// AddProducer is part of qlogwriter.Trace.
func (k *keyUpdates) AddProducer() qlogwriter.Recorder { return k }

// SupportsSchemas is part of qlogwriter.Trace.
func (k *keyUpdates) SupportsSchemas(string) bool { return false }

// RecordEvent is part of qlogwriter.Recorder.
func (k *keyUpdates) RecordEvent(event qlogwriter.Event) {
	if update, ok := event.(qlog.KeyUpdated); ok && update.Trigger == qlog.KeyUpdateLocal {
		k.local.Add(1)
	}
}

// Close is part of qlogwriter.Recorder.
func (k *keyUpdates) Close() error { return nil }
