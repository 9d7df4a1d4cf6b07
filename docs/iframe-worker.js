// Browsers start no worker for a page from the file system: there the search's one runs in a frame. mkdocs.yml names this
// file, since the plugin `offline` would load such a script from a server.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.window = frame.contentWindow;
    this.window.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data })); // what the script calls
    this.ready = new Promise((done) => {
      const script = this.window.document.createElement("script");
      script.src = url;
      script.onload = done;
      this.window.document.body.append(script);
    });
  }
  postMessage(data) {
    this.ready.then(() => this.window.dispatchEvent(new this.window.MessageEvent("message", { data: structuredClone(data) })));
  }
}
if (location.protocol === "file:") window.Worker = window.IFrameWorker = FrameWorker;
