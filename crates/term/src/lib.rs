//! Term words, heaps and the collector.
