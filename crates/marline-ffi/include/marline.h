// The client of marline. Written by `REGENERATE=1 cargo test -p marline-ffi`.
//
// Functions that return a pointer return NULL if they fail, and functions that return a number -1;
// marline_last_error() then says why. Calls block. Any thread may use a client or a connection at any time, and a
// response or a stream one thread at a time. Strings are UTF-8 and end with a zero byte. A pointer is used no more after it
// was given to its function `_free`, which takes NULL as well.

#ifndef MARLINE_H
#define MARLINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// A client: sessions, and connections to servers.
typedef struct marline_client marline_client;

// A QUIC connection.
typedef struct marline_connection marline_connection;

// The options of a client.
typedef struct marline_options marline_options;

// A response, whose content arrives as it is read.
typedef struct marline_response marline_response;

// A stream of a QUIC connection.
typedef struct marline_stream marline_stream;

// A header field.
typedef struct {
  // Its name.
  const char *name;
  // Its value.
  const char *value;
} marline_header;

// Statistics of a path.
typedef struct {
  // The path ID.
  uint64_t id;
  // The address of this host, as text; empty if it is not known.
  char local[64];
  // The address of the peer, as text.
  char remote[64];
  // Whether it carries data: it is validated, not suspected to have failed, and not abandoned.
  bool is_open;
  // The smoothed round-trip time, in nanoseconds.
  uint64_t smoothed_rtt_ns;
  // The congestion window, in bytes.
  uint64_t congestion_window;
  // Bytes in flight.
  uint64_t bytes_in_flight;
  // Bytes of UDP datagrams sent.
  uint64_t bytes_sent;
  // Bytes of UDP datagrams received.
  uint64_t bytes_received;
  // Packets that were declared lost.
  uint64_t packets_lost;
} marline_path_statistics;

// Statistics of a connection.
typedef struct {
  // The smoothed round-trip time, in nanoseconds.
  uint64_t smoothed_rtt_ns;
  // Duration of the handshake, in nanoseconds; 0 before it is complete.
  uint64_t handshake_ns;
  // Bytes of UDP datagrams sent.
  uint64_t bytes_sent;
  // Bytes of UDP datagrams received.
  uint64_t bytes_received;
  // Packets that were declared lost.
  uint64_t packets_lost;
  // The number of its paths.
  uint64_t paths;
} marline_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A client with these options, or with the defaults for NULL. It has a thread of its own.
marline_client *marline_client_new(const marline_options *options);

// Closes all connections of a client, and frees it. Calls for its responses, connections and streams fail from then on; they are
// freed as before.
void marline_client_free(marline_client *client);

// Sends a request, and waits for the header of its response. Connections are kept for later requests.
//
// `method` as "GET"; `headers` may be NULL without fields, `content` without content.
marline_response *marline_request(const marline_client *client,
                                  const char *method,
                                  const char *url,
                                  const marline_header *headers,
                                  size_t header_count,
                                  const uint8_t *content,
                                  size_t content_length);

// Opens a QUIC connection for a protocol of your own, which `protocol` names (ALPN). `url` has host and port, as
// `https://example.org:4433`.
marline_connection *marline_connect(const marline_client *client,
                                    const char *url,
                                    const char *protocol);

// Opens a stream, in both directions or only from here to the peer. Waits until the peer allows one more.
marline_stream *marline_stream_open(const marline_connection *connection, bool bidirectional);

// Waits for a stream of the peer, in both directions or only from it.
marline_stream *marline_stream_accept(const marline_connection *connection, bool bidirectional);

// The length of the largest datagram that can be sent; 0 if the peer takes none, and -1 for NULL.
ptrdiff_t marline_datagram_limit(const marline_connection *connection);

// Sends a datagram, which is not retransmitted. Returns 0 or -1.
int32_t marline_datagram_send(const marline_connection *connection, const uint8_t *data, size_t length);

// Waits for a datagram at most so many milliseconds. Returns its length, of which what does not fit is lost, and -1 if none
// arrives in time.
ptrdiff_t marline_datagram_receive(const marline_connection *connection,
                                   uint8_t *into,
                                   size_t length,
                                   uint64_t timeout_ms);

// Opens a path from an address of this host, as "192.0.2.1", and waits until it is validated. Both ends need several paths:
// the option `profile` "multipath". Returns its path ID or -1.
int64_t marline_path_open(const marline_connection *connection,
                          const char *local);

// Abandons a path. Returns 0 or -1.
int32_t marline_path_abandon(const marline_connection *connection, uint32_t id);

// Writes the statistics of up to `count` paths, and returns how many paths there are, or -1. `paths` may be NULL for none.
ptrdiff_t marline_connection_paths(const marline_connection *connection,
                                   marline_path_statistics *paths,
                                   size_t count);

// Writes the statistics of a connection. Returns 0 or -1.
int32_t marline_connection_statistics(const marline_connection *connection, marline_statistics *statistics);

// Closes a connection with an error code of the application's protocol; its streams and datagrams end. Returns 0 or -1.
int32_t marline_connection_close(const marline_connection *connection,
                                 uint64_t code);

// Frees a connection. It is closed when nothing else uses it: no stream, no response, no other of its handles.
void marline_connection_free(marline_connection *connection);

// The reason why the last call of this thread that failed did so. It is valid until another fails.
const char *marline_last_error(void);

// The version of the library, as "0.1.0".
const char *marline_version(void);

// Options with their defaults.
marline_options *marline_options_new(void);

// Sets an option. Returns 0, or -1 if there is no such option or value.
//
// `trust`: "system" (the default), the name of a file in PEM, or "insecure", which is for tests only.
// `http`: "3" (the default), "2" or "1.1".
// `fallback`: "false" if HTTP/2 must not be used where HTTP/3 does not connect, as where UDP is blocked; "true" is the default.
// `migrate`: "false" if QUIC connections must stay on their network when it is gone or gets no answers; "true" is the default.
// `interface`: the name of the interface, or the address of this host, that all connections use.
// `paths`: the interfaces or addresses that QUIC connections use, separated by spaces, as "wlan0 wwan0,backup,cap=10MB": all with
// `profile` "multipath" if the server supports it, otherwise one, and another when that is lost. HTTP/2 is not used then.
// `profile`: the settings of QUIC, as of `marline get --profile`; "multipath" for several paths.
// `bundle`: "true" if connections to one server announce that they belong together.
// `connect_timeout_ms`, `stall_timeout_ms`: milliseconds, for a connection and for a response of which nothing arrives.
// `max_time_ms`: milliseconds for a whole request, from its call to the end of the content of its response; without a limit by default.
// `qlog`: a directory for a log of each QUIC connection.
int32_t marline_options_set(marline_options *options,
                            const char *key,
                            const char *value);

// Frees options. Clients that were made of them stay.
void marline_options_free(marline_options *options);

// The status code, as 200; -1 for NULL.
int32_t marline_response_status(const marline_response *response);

// The version of HTTP, as "HTTP/3". It is valid as long as the response.
const char *marline_response_version(const marline_response *response);

// The value of the first field with this name, in any case, or NULL. It is valid as long as the response.
const char *marline_response_header(const marline_response *response, const char *name);

// Name and value of the field with this index, which are valid as long as the response. Returns 0, or -1 if there are not as
// many.
int32_t marline_response_header_at(const marline_response *response,
                                   size_t index,
                                   const char **name,
                                   const char **value);

// Reads up to `length` bytes of content, as soon as there are some. Returns their number, 0 when the content is
// complete, and -1 if it is not and no more comes.
ptrdiff_t marline_response_read(marline_response *response,
                                uint8_t *into,
                                size_t length);

// The QUIC connection of a response, for its paths and statistics. NULL over TCP.
marline_connection *marline_response_connection(const marline_response *response);

// Frees a response. A request that is not complete is cancelled.
void marline_response_free(marline_response *response);

// Its stream ID; -1 for NULL.
int64_t marline_stream_id(const marline_stream *stream);

// Sends bytes; waits until all are taken, for transmission and retransmission. Returns 0 or -1.
int32_t marline_stream_write(marline_stream *stream, const uint8_t *data, size_t length);

// Says that no more bytes follow. A stream that is freed before is reset. Returns 0 or -1.
int32_t marline_stream_finish(marline_stream *stream);

// Reads up to `length` bytes, as soon as there are some. Returns their number, 0 at the end of the stream, or -1.
ptrdiff_t marline_stream_read(marline_stream *stream,
                              uint8_t *into,
                              size_t length);

// Ends a stream at once in both directions, with an error code of the application's protocol. Returns 0 or -1.
int32_t marline_stream_reset(marline_stream *stream,
                             uint64_t code);

// Frees a stream.
void marline_stream_free(marline_stream *stream);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MARLINE_H */
