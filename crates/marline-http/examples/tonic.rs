//! gRPC of tonic over HTTP/3: `cargo run -p marline-http --example tonic` greets over one connection, by a server and a client in
//! this process.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http::{Request, StatusCode, Uri, uri::PathAndQuery};
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, Trust};
use marline_http::server::{Identity, Server, ServerConfig, Site};
use tonic::{Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// A message of protobuf, as tonic-build makes it.
#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

fn text(text: impl Into<String>) -> Text {
    Text { text: text.into() }
}

const HELLO: &str = "/greeter.Greeter/Hello";
const CHAT: &str = "/greeter.Greeter/Chat";

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

async fn hello(request: tonic::Request<Text>) -> Result<Response<Text>, Status> {
    match request.get_ref().text.as_str() {
        "" => Err(Status::invalid_argument("who is it?")),
        name => Ok(Response::new(text(format!("hello {name}")))),
    }
}

type Texts = stream::BoxStream<'static, Result<Text, Status>>;

/// Answers each message when it arrives.
async fn chat(request: tonic::Request<Streaming<Text>>) -> Result<Response<Texts>, Status> {
    let texts = request.into_inner();
    let answers = texts.map(|said| Ok(text(format!("you said {}", said?.text))));
    Ok(Response::new(answers.boxed()))
}

/// With the code of tonic-build, `Site::new` takes its servers and routes: they are services of tower as well.
fn site() -> Site {
    Site::new(service_fn(async |request: Request<Body>| {
        let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
        let response = match request.uri().path() {
            path if path == HELLO => grpc.unary(service_fn(hello), request).await,
            path if path == CHAT => grpc.streaming(service_fn(chat), request).await,
            _ => {
                let mut response = http::Response::new(tonic::body::Body::empty());
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        };
        Ok::<_, Infallible>(response.map(Body::new))
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::self_signed(vec!["localhost".to_owned()])?;
    let server = Server::bind(ServerConfig::new(
        ([127, 0, 0, 1], 0).into(),
        identity,
        site(),
    ))
    .await?;
    let origin: Uri = format!("https://localhost:{}", server.local_addr().port()).parse()?;
    let handle = server.handle();
    let serving = tokio::spawn(server.run());

    let client = Arc::new(Client::new(ClientConfig {
        trust: Trust::Insecure,
        // HTTP/3 or nothing; as by default, HTTP/2 would stand in for it.
        fallback: false,
        ..ClientConfig::default()
    })?);
    // Clones of the service share the connection.
    let mut grpc = tonic::client::Grpc::with_origin(client.service(), origin);

    let request = tonic::Request::new(text("you"));
    let response: Response<Text> = grpc.unary(request, path(HELLO), codec()).await?;
    println!("{}", response.get_ref().text);

    let request = tonic::Request::new(text(""));
    let refused: Result<Response<Text>, _> = grpc.unary(request, path(HELLO), codec()).await;
    println!(
        "{}",
        refused
            .err()
            .map_or("no error".to_owned(), |status| status.message().to_owned())
    );

    // The first answer arrives before the second message is sent.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let said = stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    sender.send(text("one")).await?;
    let request = tonic::Request::new(said);
    let mut answers = grpc
        .streaming(request, path(CHAT), codec())
        .await?
        .into_inner();
    for next in [Some("two"), None] {
        let answer: Option<Text> = answers.message().await?;
        println!("{}", answer.unwrap_or_default().text);
        if let Some(next) = next {
            sender.send(text(next)).await?;
        }
    }
    drop(sender);
    handle.shut_down();
    serving.await??;
    Ok(())
}

fn codec() -> ProstCodec<Text, Text> {
    ProstCodec::default()
}
